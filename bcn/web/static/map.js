// The BCN's map over a picture: the cell of each position, and outlines that are larger where more channels come from.

const SMALLEST = 0.25, LARGEST = 0.9;  // sides of the outlines of one channel and of the most, as shares of a cell

export const size = ({ rows, columns }) => ({ rows: rows.length - 1, columns: columns.length - 1 });

// Where a position lies on a picture of this width and height.
export function cellBox({ rows, columns }, position, width, height) {
  const wide = columns.length - 1, row = Math.floor(position / wide), column = position % wide;
  const x = columns[column] * width, y = rows[row] * height;
  return { x, y, width: columns[column + 1] * width - x, height: rows[row + 1] * height - y };
}

// The position under a point of the picture, from 0 to 1 across and down.
export function cellAt({ rows, columns }, across, down) {
  const index = (edges, at) => Math.max(0, edges.findIndex((edge) => edge > at) - 1);
  return index(rows, Math.min(down, 0.9999)) * (columns.length - 1) + index(columns, Math.min(across, 0.9999));
}

// How many channels come from each position.
export function countChannels({ position }) {
  const counts = new Map();
  for (const each of position) if (each >= 0) counts.set(each, (counts.get(each) ?? 0) + 1);
  return counts;
}

// All outlines as one path.
export function outlines(broadcast, width, height) {
  const counts = countChannels(broadcast), largest = Math.max(...counts.values());
  let path = "";
  for (const [position, count] of counts) {
    const box = cellBox(broadcast, position, width, height);
    const share = SMALLEST + (LARGEST - SMALLEST) * Math.sqrt(count / largest), w = share * box.width, h = share * box.height;
    path += `M${(box.x + (box.width - w) / 2).toFixed(2)} ${(box.y + (box.height - h) / 2).toFixed(2)}h${w.toFixed(2)}v${h.toFixed(2)}h${(-w).toFixed(2)}z`;
  }
  return path;
}
