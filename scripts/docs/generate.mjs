// Generates everything that is made from the code, in one process: openapi.json, the types of both clients, and the
// tables of documents. Run `npm run build` first.
//
//   node scripts/docs/generate.mjs            writes the files
//   node scripts/docs/generate.mjs --check    fails if one is out of date

// In this order: the types are made from openapi.json.
await import('./openapi.mjs');
await import('./client-types.mjs');
await import('./client-methods.mjs');
await import('./configuration.mjs');
await import('./tables.mjs');
