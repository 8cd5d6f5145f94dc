// The types of conformance cases, which describe behaviour of the service as data. README.md in this folder says how to
// write them.

import { readdirSync, readFileSync } from 'node:fs';
import type { Json, JsonObject } from '../../src/common/types.js';
import { fillIn } from './expand.js';
import { inRepository } from './repository.js';
import type { ProfileName } from './servers.js';

export interface CaseFile {
  /** The subject of the cases, as a heading. */
  readonly section: string;
  readonly cases: readonly Case[];
}

/** A file as written. `readCaseFiles` applies `defaults` and `kinds`. */
interface StoredFile {
  readonly section: string;
  /** The kinds that each case runs for, with their values, by name. */
  readonly kinds?: Readonly<Record<string, JsonObject>>;
  /** Members of cases that do not set their own. */
  readonly defaults?: Partial<Case>;
  readonly cases: readonly StoredCase[];
}

type StoredCase = Omit<Case, 'steps'> & {
  readonly steps: readonly (Step | RefusalStep)[];
  /** The kinds to run the case for; by default all kinds in the file. */
  readonly kinds?: readonly string[];
};

export interface Case {
  /** A sentence that describes the behaviour. */
  readonly name: string;
  readonly steps: readonly Step[];
  /** Why the service does not behave like this yet. The case is reported as todo, and fails once its steps pass. */
  readonly defect?: string;
  /** Runs the case without `/v1` as well as with it. */
  readonly bothPrefixes?: boolean;
  /** The server for steps that name none. With several servers, the case runs on each. */
  readonly server?: ProfileName | readonly ProfileName[];
  /** Created before the steps as {{collection}}, with `vectors` in it. Null creates neither. */
  readonly collection?: JsonObject | null;
  readonly vectors?: Json;
  /** Created before the steps as {{other}}. */
  readonly other?: JsonObject;
  /** Runs only on a single server: in a cluster, another node may not know yet what earlier steps have done. */
  readonly alone?: true;
}

export type Step = RequestStep | FilterStep | TogetherStep | WaitStep | RestartStep;

export interface RequestStep {
  readonly method: string;
  /** Percent-encoded path as sent, but without `/v1`. */
  readonly path: string;
  /** Encoded and appended to the path; objects are sent as JSON. */
  readonly query?: JsonObject;
  /** A header that is null is not sent. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** At most one of three bodies: JSON, raw text (whole, or pieces with repeat counts), or bytes as base64. */
  readonly body?: Json;
  readonly raw?: string | readonly (readonly [string, number])[];
  readonly base64?: string;
  /** Whether the path never has a prefix. */
  readonly operational?: true;
  readonly server?: ProfileName;
  /** The number of these requests to send at once. Each reply must be as expected. */
  readonly times?: number;
  /** The expected reply, or an array of acceptable ones. */
  readonly expect: Expectation | readonly Expectation[];
  /** Values to save for later steps, by name: a JSON pointer into the body or the name of a header. */
  readonly save?: Readonly<Record<string, string>>;
}

/**
 * A table of refused requests to one path. Each row is a step: the body (as text in `raws`), the status, the code and,
 * optionally, the pointer of the finding and more members of the problem.
 */
interface RefusalStep {
  /** Method and path. */
  readonly refuse: string;
  readonly bodies?: readonly RefusalRow<Json>[];
  readonly raws?: readonly RefusalRow<string>[];
}

type RefusalRow<Body> = readonly [Body, string, (string | null)?, Omit<ExpectedProblem, 'code'>?];

/** The rows of {{collection}} that a filter matches, which count, list, query and delete must agree on. */
export interface FilterStep {
  readonly filter: JsonObject;
  readonly matches: readonly string[];
}

/** Concurrent requests, each started `apartMs` after the previous one. */
export interface TogetherStep {
  readonly together: readonly RequestStep[];
  readonly apartMs?: number;
}

interface WaitStep {
  readonly waitMs: number;
}

/** Stops the server of the case and starts it again over the same data. */
interface RestartStep {
  readonly restart: true;
}

export interface Expectation {
  readonly status: number;
  readonly headers?: JsonObject;
  readonly body?: Json;
  /** The unparsed body. */
  readonly text?: Json;
  readonly problem?: ExpectedProblem;
}

interface ExpectedProblem {
  readonly code: string;
  /** JSON pointer of a single finding. */
  readonly pointer?: string;
  /** The bound that a single finding names. */
  readonly expected?: Json;
  /** The value that a single finding names. */
  readonly actual?: Json;
  /** All findings, in order, if there are several. */
  readonly errors?: Json;
  readonly detail?: Json;
}

/** Reads all files of cases. Throws for a member that nothing reads, since a misspelt one would check nothing. */
export function readCaseFiles(): { name: string; file: CaseFile }[] {
  const directory = inRepository('test', 'conformance', 'cases');
  return readdirSync(directory)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => {
      const file = JSON.parse(readFileSync(`${directory}/${name}`, 'utf8')) as StoredFile;
      checkMembers(file, name);
      const cases = file.cases
        .flatMap((own) => casesOf({ ...file.defaults, ...own }, file.kinds))
        .map(({ steps, ...rest }) => ({ ...rest, steps: steps.flatMap(stepsOf) }));
      return { name, file: { section: file.section, cases } };
    });
}

/** Returns one case per kind or, in a file without kinds, the case itself. */
function casesOf({ kinds, ...own }: StoredCase, known: StoredFile['kinds']): StoredCase[] {
  if (known === undefined) return [own];
  return (kinds ?? Object.keys(known)).map((kind) => {
    const filled = fillIn(own as unknown as JsonObject, known[kind]!) as unknown as StoredCase;
    return { ...filled, name: `${own.name} (${kind})` };
  });
}

/** Expands a table of refusals into steps and returns any other step as it is. */
function stepsOf(step: Step | RefusalStep): Step[] {
  if (!('refuse' in step)) return [step];
  const [method, path] = step.refuse.split(' ') as [string, string];
  const rows = [
    ...(step.bodies ?? []).map(([body, ...rest]) => [{ body }, ...rest] as const),
    ...(step.raws ?? []).map(([raw, ...rest]) => [{ raw }, ...rest] as const),
  ];
  return rows.map(([sent, found, pointer = null, more = {}]) => {
    const [status, code] = found.split(' ') as [string, string];
    const problem = { code, ...(pointer !== null && { pointer }), ...more };
    return { method, path, ...sent, expect: { status: Number(status), problem } };
  });
}

const CASE = 'name steps defect bothPrefixes server collection vectors other alone kinds';
const STEPS = {
  refuse: 'refuse bodies raws',
  method: 'method path query headers body raw base64 operational server times expect save',
  filter: 'filter matches',
  together: 'together apartMs',
  waitMs: 'waitMs',
  restart: 'restart',
} as const;
const EXPECTATION = 'status headers body text problem';
const PROBLEM = 'code pointer expected actual errors detail';

function checkMembers(file: StoredFile, name: string): void {
  refuseOthers(file, 'section kinds defaults cases', name);
  refuseOthers(file.defaults ?? {}, CASE, `${name}, defaults`);
  for (const testCase of file.cases) {
    const place = `${name}, "${testCase.name}"`;
    refuseOthers(testCase, CASE, place);
    for (const step of testCase.steps) checkStep(step, place);
  }
}

function checkStep(step: Step | RefusalStep, place: string): void {
  const kind = (Object.keys(STEPS) as (keyof typeof STEPS)[]).find((member) => member in step);
  if (kind === undefined) throw new Error(`${place}: expected a step of a known kind`);
  refuseOthers(step, STEPS[kind], place);
  if ('together' in step) for (const one of step.together) checkStep(one, place);
  if (!('expect' in step)) return;
  for (const expectation of [step.expect].flat() as Expectation[]) {
    refuseOthers(expectation, EXPECTATION, place);
    refuseOthers(expectation.problem ?? {}, PROBLEM, place);
  }
}

function refuseOthers(object: object, known: string, place: string): void {
  const other = Object.keys(object).find((member) => !known.split(' ').includes(member));
  if (other !== undefined) throw new Error(`${place}: nothing reads the member "${other}"`);
}
