// Configures orval to generate a client over `fetch`, called through a function that knows the address of the service.

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
