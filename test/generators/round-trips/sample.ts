// What every round trip writes, and what it must find. Scores under the dot product with QUERY fall with
// the year.

export const QUERY = [1, 0, 0];

/** By year, of which no two are the same. */
export const VECTORS = [2020, 2021, 2022, 2023].map((year, index) => ({
  id: `article-${year}`,
  values: [4 - index, index, 0.5],
  metadata: { year, tags: ['news'], author: { name: 'Ada' } },
}));

/** The filter that leaves FOUND. */
export const FILTER = { $or: [{ year: { $gte: 2022 } }, { year: 2020 }] };
export const FOUND = ['article-2020', 'article-2022', 'article-2023'];

/** The address of the service. */
export const URL_OF_SERVICE = String(process.argv[2]);
