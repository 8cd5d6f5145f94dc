// How the benches start servers: as the command does, in the first line of src/cli/main.ts.

export const AS_THE_COMMAND = {
  settings: { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '131072' },
  nodeArguments: ['--max-semi-space-size=8'],
} as const;
