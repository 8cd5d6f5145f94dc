// Describes a name that does not exist, for error messages: with the one that was probably meant, else
// with all that exist.

/** Longer names are compared with nothing: the comparison takes time by the product of the lengths. */
const NAME_CHARACTERS_MAX = 64;
/** One edit for each so many characters is taken for a misspelling. */
const CHARACTERS_PER_EDIT = 3;

export function describeUnknownName(found: string, known: readonly string[]): string {
  const start = `There is nothing named ${JSON.stringify(found)} here`;
  const nearest = nearestName(found, known);
  if (nearest !== undefined) return `${start}; did you mean ${JSON.stringify(nearest)}?`;
  return `${start}; expected ${known.length === 0 ? 'nothing' : known.join(', ')}.`;
}

/** The nearest of the names, which differ in case and separators at no cost; undefined for none near. */
export function nearestName(found: string, names: readonly string[]): string | undefined {
  if (found.length > NAME_CHARACTERS_MAX) return undefined;
  const plainFound = plain(found);
  let nearest: string | undefined;
  let editsMax = Math.max(1, Math.floor(plainFound.length / CHARACTERS_PER_EDIT));
  for (const name of names) {
    const edits = editDistance(plainFound, plain(name));
    if (edits > editsMax || edits >= name.length) continue;
    nearest = name;
    editsMax = edits - 1;
  }
  return nearest;
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** Insertions, deletions, replacements and swaps of neighbours that make one text of the other. */
function editDistance(a: string, b: string): number {
  // Rows of the table of distances between the beginnings of a and all beginnings of b.
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (isSame ? 0 : 1));
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) row[j] = Math.min(row[j]!, beforeLast[j - 2]! + 1);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length]!;
}
