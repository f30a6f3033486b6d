// Questions in words: which of them a network knows, which have a synonym that it knows, and for others the nearest that it does.

const FURTHEST = 2;  // edits

export const tokenize = (question) => question.normalize("NFC").toLowerCase().match(/[\p{L}\p{N}\p{M}_]+(?:[-'][\p{L}\p{N}\p{M}_]+)*|[,;]/gu) ?? [];

export function edits(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next.push(Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + (a[i - 1] !== b[j - 1])));
    row = next;
  }
  return row[b.length];
}

// Each word, or phrase of two, as a network reads it: `read` is null for one that it does not know, and then `nearest` may help.
export function readWords(question, { words: vocabulary, synonyms }) {
  const known = new Set(vocabulary), words = tokenize(question), found = [];
  for (let n = 0; n < words.length; n++) {
    const pair = words.slice(n, n + 2), phrase = pair.join(" ");
    if (pair.length === 2 && !pair.every((each) => known.has(each)) && phrase in synonyms) { found.push({ word: phrase, read: synonyms[phrase], nearest: null }); n++; continue; }
    const [word] = pair, read = known.has(word) ? word : synonyms[word] ?? null;
    found.push({ word, read, nearest: read === null ? nearestOf(word, vocabulary) : null });
  }
  return found;
}
function nearestOf(word, vocabulary) {
  const [distance, nearest] = vocabulary.map((each) => [edits(word, each), each]).reduce((a, b) => (b[0] < a[0] ? b : a), [Infinity, null]);
  return distance <= FURTHEST ? nearest : null;
}
