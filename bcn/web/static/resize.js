// An image as a network takes it: made smaller as Pillow does (bilinear, each pass rounded to bytes), then three planes.

// The weights of source pixels for each target pixel: a triangle as wide as the scale, or two pixels.
function weights(from, to) {
  const scale = from / to, support = Math.max(1, scale);
  return Array.from({ length: to }, (_, n) => {
    const centre = (n + 0.5) * scale, first = Math.max(0, Math.floor(centre - support + 0.5)), last = Math.min(from, Math.floor(centre + support + 0.5));
    const parts = Array.from({ length: last - first }, (_, k) => Math.max(0, 1 - Math.abs((first + k + 0.5 - centre) / support)));
    const sum = parts.reduce((a, b) => a + b);
    return { first, parts: parts.map((part) => part / sum) };
  });
}

// Bytes of one plane in another size.
function resizePlane(plane, width, height, toWidth, toHeight) {
  const across = weights(width, toWidth), down = weights(height, toHeight);
  const wide = new Uint8ClampedArray(toWidth * height), out = new Uint8ClampedArray(toWidth * toHeight);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < toWidth; x++) wide[y * toWidth + x] = across[x].parts.reduce((sum, part, k) => sum + part * plane[y * width + across[x].first + k], 0);
  for (let y = 0; y < toHeight; y++)
    for (let x = 0; x < toWidth; x++) out[y * toWidth + x] = down[y].parts.reduce((sum, part, k) => sum + part * wide[(down[y].first + k) * toWidth + x], 0);
  return out;
}

// The planes red, green and blue of a picture's file, in this size.
export async function readPlanes(content, toWidth, toHeight) {
  const picture = await createImageBitmap(new Blob([content])), { width, height } = picture;
  const pen = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  pen.drawImage(picture, 0, 0);
  const { data } = pen.getImageData(0, 0, width, height), planes = new Uint8Array(3 * toWidth * toHeight);
  for (let channel = 0; channel < 3; channel++) {
    const plane = Uint8Array.from({ length: width * height }, (_, n) => data[4 * n + channel]);
    planes.set(resizePlane(plane, width, height, toWidth, toHeight), channel * toWidth * toHeight);
  }
  return planes;
}
