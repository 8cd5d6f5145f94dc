// Generates everything that is derived from the code: openapi.json, the types of both clients, and the tables in
// documents. Run `npm run build` first.
//
//   node scripts/docs/generate.mjs            writes the files
//   node scripts/docs/generate.mjs --check    fails if a file is out of date

// The order matters: the types are generated from openapi.json.
await import('./openapi.mjs');
await import('./client-types.mjs');
await import('./client-methods.mjs');
await import('./configuration.mjs');
await import('./tables.mjs');
