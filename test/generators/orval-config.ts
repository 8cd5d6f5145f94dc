// How orval makes its client: over `fetch`, by a function that knows the address of the service.

export default {
  sagitta: {
    input: './openapi.json',
    output: {
      target: './generated/orval/api.ts',
      client: 'fetch',
      override: { mutator: { path: './round-trips/orval-fetch.ts', name: 'callService' } },
    },
  },
};
