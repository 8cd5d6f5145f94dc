// What a file of conformance cases holds: behaviour of the service as data. README.md in this
// folder says how to write one.

import { readdirSync, readFileSync } from 'node:fs';
import type { Json, JsonObject } from '../../src/common/types.js';
import { fillIn } from './expand.js';
import { inRepository } from './repository.js';
import type { ProfileName } from './servers.js';

export interface CaseFile {
  /** What the cases are about, as a heading. */
  readonly section: string;
  readonly cases: readonly Case[];
}

/** As it is written: `readCaseFiles` applies `defaults` and `kinds`. */
interface StoredFile {
  readonly section: string;
  /** By name, the values of the kinds of something that each case is run for. */
  readonly kinds?: Readonly<Record<string, JsonObject>>;
  /** Members that cases without their own have. */
  readonly defaults?: Partial<Case>;
  readonly cases: readonly StoredCase[];
}

type StoredCase = Omit<Case, 'steps'> & {
  readonly steps: readonly (Step | RefusalStep)[];
  /** Those of the file by default. */
  readonly kinds?: readonly string[];
};

export interface Case {
  /** A sentence of behaviour. */
  readonly name: string;
  readonly steps: readonly Step[];
  /** Why the service does not do this yet: the case is reported as todo, and fails once it passes. */
  readonly defect?: string;
  /** Runs the case with and without `/v1`; else it runs with it. */
  readonly bothPrefixes?: boolean;
  /** The server of the steps that name none; several: the case runs on each. */
  readonly server?: ProfileName | readonly ProfileName[];
  /** Created before the steps as {{collection}}, with `vectors` in it; null for none of either. */
  readonly collection?: JsonObject | null;
  readonly vectors?: Json;
  /** Created before the steps as {{other}}. */
  readonly other?: JsonObject;
  /** Only for a service that is alone: of a cluster, another node need not know yet what the steps before have done. */
  readonly alone?: true;
}

export type Step = RequestStep | FilterStep | TogetherStep | WaitStep | RestartStep;

export interface RequestStep {
  readonly method: string;
  /** Without `/v1`, percent-encoded, as it goes over the wire. */
  readonly path: string;
  /** Appended to the path, encoded; objects as JSON. */
  readonly query?: JsonObject;
  /** A header that is null is not sent. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** One of these three, or no body: JSON, text as it is (whole, or pieces and how often), bytes as base64. */
  readonly body?: Json;
  readonly raw?: string | readonly (readonly [string, number])[];
  readonly base64?: string;
  /** The path never has a prefix. */
  readonly operational?: true;
  readonly server?: ProfileName;
  /** Sends so many of these requests at once; each reply is as expected. */
  readonly times?: number;
  /** An array: any of these. */
  readonly expect: Expectation | readonly Expectation[];
  /** A name for later steps; from a JSON pointer into the body, or from the header of that name. */
  readonly save?: Readonly<Record<string, string>>;
}

/**
 * Requests to one path that are all refused, as a table: in each row the body (`raws`: as text), the status and the code,
 * and if there are any the pointer of the finding and further members of the problem. A row becomes a step.
 */
interface RefusalStep {
  /** Method and path. */
  readonly refuse: string;
  readonly bodies?: readonly RefusalRow<Json>[];
  readonly raws?: readonly RefusalRow<string>[];
}

type RefusalRow<Body> = readonly [Body, string, (string | null)?, Omit<ExpectedProblem, 'code'>?];

/** The rows of {{collection}} that a filter means, the same for count, list, query and delete. */
export interface FilterStep {
  readonly filter: JsonObject;
  readonly matches: readonly string[];
}

/** Requests that are under way at the same time, each started `apartMs` after the one before. */
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
  /** The body as it came. */
  readonly text?: Json;
  readonly problem?: ExpectedProblem;
}

interface ExpectedProblem {
  readonly code: string;
  /** Of the one finding. */
  readonly pointer?: string;
  /** Of the one finding: the bound and what was found. */
  readonly expected?: Json;
  readonly actual?: Json;
  /** All findings, in order, where there are several. */
  readonly errors?: Json;
  readonly detail?: Json;
}

/** Every file of cases, by name. Throws for a member that nothing reads: a typo would check nothing. */
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

/** A case for each of its kinds; in a file without kinds, the case itself. */
function casesOf({ kinds, ...own }: StoredCase, known: StoredFile['kinds']): StoredCase[] {
  if (known === undefined) return [own];
  return (kinds ?? Object.keys(known)).map((kind) => {
    const filled = fillIn(own as unknown as JsonObject, known[kind]!) as unknown as StoredCase;
    return { ...filled, name: `${own.name} (${kind})` };
  });
}

/** The steps of a table of refusals; any other step is itself. */
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
  if (kind === undefined) throw new Error(`${place}: a step of no known kind`);
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
