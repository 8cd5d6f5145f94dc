// Error messages for names that do not exist: they suggest the name that was probably meant, or list all existing ones.
// Names may come from hostile requests, so long ones are truncated and not compared.

/** Longer names are not compared, because the time is proportional to the product of the lengths. */
const NAME_CHARACTERS_MAX = 64;
/** One edit per this many characters still counts as a misspelling. */
const CHARACTERS_PER_EDIT = 3;

/**
 * Member names of other systems, in lower case without separators, and the corresponding names here in order of
 * preference. The first one that exists in the context is suggested.
 */
const NAMES_OF_SYNONYM = new Map<string, readonly string[]>(
  Object.entries({
    attributes: ['metadata'],
    class: ['collection'],
    classname: ['collection'],
    collectionname: ['collection', 'id'],
    conditions: ['filter'],
    data: ['vectors', 'metadata'],
    dim: ['dimension'],
    dims: ['dimension'],
    distance: ['metric'],
    document: ['metadata'],
    documents: ['vectors'],
    embedding: ['values', 'vector'],
    embeddings: ['vectors', 'values'],
    hybrid: ['fusion'],
    index: ['collection'],
    indexname: ['collection'],
    k: ['top_k'],
    key: ['id'],
    keys: ['ids'],
    limit: ['top_k'],
    lookup: ['ids'],
    match: ['filter'],
    maxresults: ['top_k', 'limit'],
    minscore: ['score_threshold'],
    n: ['top_k'],
    name: ['id'],
    nearvector: ['vector'],
    nresults: ['top_k'],
    numcandidates: ['top_k'],
    numdimensions: ['dimension'],
    orderby: ['sort'],
    pagetoken: ['cursor'],
    paginationtoken: ['cursor'],
    payload: ['metadata'],
    pk: ['id'],
    points: ['vectors', 'ids'],
    properties: ['metadata'],
    query: ['vector', 'text'],
    queryembedding: ['vector'],
    queryfilter: ['filter'],
    queryvector: ['vector'],
    records: ['vectors'],
    returnmetadata: ['include_metadata'],
    rows: ['vectors'],
    similarity: ['metric'],
    size: ['top_k', 'dimension'],
    skip: ['offset'],
    space: ['metric'],
    topn: ['top_k'],
    uuid: ['id'],
    vector: ['values'],
    vectordimension: ['dimension'],
    vectorsize: ['dimension'],
    where: ['filter'],
    withmetadata: ['include_metadata'],
    withpayload: ['include_metadata'],
    withvector: ['include_values'],
    withvectors: ['include_values'],
  }),
);

export function describeUnknownName(found: string, known: readonly string[]): string {
  const start = `There is nothing named ${JSON.stringify(cutName(found))} here`;
  const meant = meantBySynonym(found, known) ?? nearestName(found, known);
  if (meant !== undefined) return `${start}; did you mean ${JSON.stringify(meant)}?`;
  return `${start}; expected ${known.length === 0 ? 'nothing' : known.join(', ')}.`;
}

/** The name as shown in messages; a long one is truncated. */
export function cutName(name: string): string {
  if (name.length <= NAME_CHARACTERS_MAX) return name;
  // Drops half of a surrogate pair at the cut.
  return `${name.slice(0, NAME_CHARACTERS_MAX).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** The most similar name, ignoring case and separators; undefined if none is similar enough. */
export function nearestName(found: string, names: readonly string[]): string | undefined {
  if (found.length > NAME_CHARACTERS_MAX) return undefined;
  const plainFound = plain(found);
  let nearest: string | undefined;
  let editsMax = Math.max(1, Math.floor(plainFound.length / CHARACTERS_PER_EDIT));
  for (const name of names) {
    const plainName = plain(name);
    // Each edit changes the length by at most one character.
    if (Math.abs(plainName.length - plainFound.length) > editsMax) continue;
    const edits = editDistance(plainFound, plainName);
    if (edits > editsMax || edits >= name.length) continue;
    nearest = name;
    editsMax = edits - 1;
  }
  return nearest;
}

function meantBySynonym(found: string, known: readonly string[]): string | undefined {
  if (found.length > NAME_CHARACTERS_MAX) return undefined;
  return NAMES_OF_SYNONYM.get(plain(found))?.find((name) => known.includes(name));
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** Number of insertions, deletions, replacements and swaps of neighbours that turn one text into the other. */
function editDistance(a: string, b: string): number {
  // Rows of the table of distances between the prefixes of `a` and those of `b`.
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
