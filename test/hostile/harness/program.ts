// Common parts of programs for long runs: options with `--minutes` and `--seed`, rounds until the time is over, and the
// summary of faults, which determines the exit code.

import { parseArgs } from 'node:util';

const MINUTE_MS = 60_000;

/** Defaults by option name: a number, a text, or a switch that is off. Undefined for no default. */
type Defaults = Readonly<Record<string, number | string | false | undefined>>;

type Values<Own extends Defaults> = {
  readonly [Name in keyof Own]: Own[Name] extends number
    ? number
    : Own[Name] extends false
      ? boolean
      : Own[Name] extends string
        ? string
        : string | undefined;
};

export interface ProgramOptions<Own extends Defaults> {
  readonly seed: number;
  /** Infinity if there is neither a default nor an option. */
  readonly durationMs: number;
  readonly values: Values<Own>;
}

/** Reads the options of this program and prints the seed that reproduces the run. */
export function readOptions<const Own extends Defaults>(
  minutes: number,
  own: Own,
): ProgramOptions<Own> {
  const defaults: Defaults = {
    minutes,
    // libFuzzer treats 0 as no seed.
    seed: Number(process.env.SAGITTA_TEST_SEED ?? 1 + (Date.now() % 1_000_000)),
    ...own,
  };
  const options = Object.entries(defaults).map(
    ([name, value]) => [name, { type: value === false ? 'boolean' : 'string' }] as const,
  );
  const { values } = parseArgs({ options: Object.fromEntries(options) });
  const read = Object.entries(defaults).map(([name, byDefault]) => {
    const given = values[name];
    if (given === undefined) return [name, byDefault];
    if (typeof byDefault !== 'number') return [name, given];
    if (Number.isNaN(Number(given))) throw new Error(`--${name} has ${given}; expected a number`);
    return [name, Number(given)];
  });
  const all = Object.fromEntries(read) as Values<Own> & { seed: number; minutes: number };
  console.log(`seed ${all.seed}`);
  // A program that restarts itself in separate namespaces keeps the seed.
  process.env.SAGITTA_TEST_SEED = `${all.seed}`;
  return { seed: all.seed, durationMs: all.minutes * MINUTE_MS, values: all };
}

/** The names in a comma-separated list, each of which must be known. */
export function namesOf<Name extends string>(
  option: string,
  list: string,
  known: readonly Name[],
): Name[] {
  return list
    .split(',')
    .filter((name) => name !== '')
    .map((name) => {
      const found = known.find((candidate) => candidate === name);
      if (found === undefined) throw new Error(`--${option} has ${name}; expected any of ${known}`);
      return found;
    });
}

/** The numbers of rounds, up to a count or until the time is over. */
export function* roundsOf(limits: {
  readonly count: number;
  readonly first?: number;
  readonly durationMs?: number | undefined;
}): Generator<number, void> {
  const { count, first = 0, durationMs = Infinity } = limits;
  const endMs = performance.now() + durationMs;
  for (let round = first; round < first + count && performance.now() < endMs; round++) yield round;
}

/** Prints the faults; if there are any, the program fails. */
export function summarize(faults: readonly string[]): void {
  for (const fault of faults) console.log(`fault: ${fault}`);
  console.log(faults.length === 0 ? 'no faults' : `${faults.length} faults`);
  if (faults.length > 0) process.exitCode = 1;
}

/** The quantile of ascending values at this share. */
export function quantile(ascending: readonly number[], share: number): number {
  return (
    ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? Number.NaN
  );
}
