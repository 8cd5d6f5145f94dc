// The vectors that every round trip writes, and the results it must find. Dot products with QUERY fall as the year
// rises.

export const QUERY = [1, 0, 0];

/** One vector per year. */
export const VECTORS = [2020, 2021, 2022, 2023].map((year, index) => ({
  id: `article-${year}`,
  values: [4 - index, index, 0.5],
  metadata: { year, tags: ['news'], author: { name: 'Ada' } },
}));

/** Matches exactly the vectors in FOUND. */
export const FILTER = { $or: [{ year: { $gte: 2022 } }, { year: 2020 }] };
export const FOUND = ['article-2020', 'article-2022', 'article-2023'];

/** The address of the service. */
export const URL_OF_SERVICE = String(process.argv[2]);
