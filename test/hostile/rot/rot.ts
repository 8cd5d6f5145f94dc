// Damages files of a data directory or a backup, has a process examine it, and judges the result: the service must
// refuse, naming the damaged file and what to do; or repair, and say so; or nothing has changed. A wrong answer, a
// crash, an unclear message, and damage that `verify` does not find are faults. The stores were closed properly, so
// each of their commits is known to have been acknowledged.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, linkSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRandom } from '../../database/harness.js';
import { roundsOf } from '../harness/program.js';
import {
  type Damage,
  damage,
  type FileKind,
  type FileToDamage,
  filesIn,
  kindOf,
} from './damage.js';
import type { Examination, Failure } from './examination.js';
import type { ExaminerInput } from './examiner.js';
import {
  type Answer,
  BACKUPS,
  makeSample,
  NEWER,
  NEWER_BACKUP,
  OLDER,
  OLDER_BACKUP,
  OTHER_STORE,
} from './sample.js';

const EXAMINER = fileURLToPath(new URL('./examiner.js', import.meta.url));
const EXAMINATION_MS_MAX = 120_000;
/** Segment files are never written to, so copies may share them. */
const isShared = (name: string) => name.endsWith('.arrow');

type Outcome =
  | 'refused at the start'
  | 'refused by collections'
  | 'refused by restore'
  | 'repaired'
  | 'an earlier state'
  | 'without effect'
  | 'without effect, but reported'
  | 'fault';

interface Judged {
  readonly outcome: Outcome;
  /** What is wrong. */
  readonly fault?: string;
}

export interface RotReport {
  readonly seed: number;
  /** By kind of file and by outcome. */
  readonly outcomes: Readonly<Record<string, Record<string, number>>>;
  readonly faults: readonly string[];
}

export interface RotOptions {
  readonly caseCount: number;
  readonly seed: number;
  /** The kind of files to damage; all kinds by default. */
  readonly kind?: FileKind | undefined;
  /** Number of the first case, to repeat one. */
  readonly first?: number;
  /** Examines only data directories, not their segment files, and without the service, which allows many more cases. */
  readonly isStoreOnly?: boolean;
  /** No case begins later than this after the start. */
  readonly durationMs?: number;
  readonly onCase?: (number: number, what: string, judged: Judged) => void;
}

interface Target {
  readonly isBackup: boolean;
  readonly source: string;
  readonly file: FileToDamage;
  /** Whether it is the newest base of a journal, or a log after it. */
  readonly isNewest: boolean;
}

export async function runRot(options: RotOptions): Promise<RotReport> {
  const { caseCount, seed, first = 0, durationMs, onCase = () => {} } = options;
  const { isStoreOnly = false } = options;
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-rot-'));
  const examiner = new Examiner();
  try {
    await makeSample(folder, seed);
    const targets = targetsIn(folder).filter((target) => isWanted(target, options));
    const kinds = [...new Set(targets.map(({ file }) => file.kind))];
    const expected = await examineIntact(folder, examiner, isStoreOnly);
    const outcomes: Record<string, Record<string, number>> = {};
    const faults: string[] = [];
    for (const number of roundsOf({ first, count: caseCount, durationMs })) {
      const random = createRandom(seed * 1_000_003 + number);
      // Most faults concern logs.
      const drawn = random() < 0.3 && kinds.includes('log') ? 'log' : pick(kinds, random);
      const target = drawTarget(
        targets.filter(({ file }) => file.kind === drawn),
        random,
      );
      const directory = join(folder, 'case');
      await copyForCase(target.source, directory);
      const done = damage(directory, target.file, random);
      const place = `${target.isBackup ? 'backup, ' : ''}${done.what}`;
      const examination = await examiner.examine({
        directory,
        isBackup: target.isBackup,
        mayGetWorse: target.file.kind === 'log' || target.file.kind === 'base',
        isStoreOnly,
      });
      const judged = judge(examination, { ...done, isBackup: target.isBackup }, expected);
      outcomes[drawn] ??= {};
      const counts = outcomes[drawn];
      counts[judged.outcome] = (counts[judged.outcome] ?? 0) + 1;
      if (judged.fault !== undefined) faults.push(`case ${number}: ${place}: ${judged.fault}`);
      onCase(number, place, judged);
    }
    return { seed, outcomes, faults };
  } finally {
    examiner.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function isWanted({ isBackup, file }: Target, { kind, isStoreOnly }: RotOptions): boolean {
  if (kind !== undefined && file.kind !== kind) return false;
  return isStoreOnly !== true || (!isBackup && file.kind !== 'segment');
}

function pick<T>(items: readonly T[], random: () => number): T {
  return items[Math.floor(random() * items.length)]!;
}

/** Every start reads a journal from its newest base on; of older files, only records are read. */
function drawTarget(targets: readonly Target[], random: () => number): Target {
  const newest = targets.filter(({ isNewest }) => isNewest);
  return pick(newest.length > 0 && random() < 0.6 ? newest : targets, random);
}

function targetsIn(folder: string): Target[] {
  const backups = join(folder, BACKUPS);
  const other = join(folder, OTHER_STORE);
  const strangers = filesIn(other).map((path) => join(other, path));
  return [
    ...targetsOf(join(folder, NEWER), join(folder, OLDER), { strangers, isBackup: false }),
    ...targetsOf(join(backups, NEWER_BACKUP), join(backups, OLDER_BACKUP), {
      strangers,
      isBackup: true,
    }),
  ];
}

function targetsOf(
  source: string,
  olderFolder: string,
  { strangers, isBackup }: { strangers: readonly string[]; isBackup: boolean },
): Target[] {
  const paths = filesIn(source);
  const newestBase = paths.filter((path) => kindOf(path) === 'base').at(-1)!;
  return paths.map((path) => {
    const isAlike = (other: string) => kindOf(other) === kindOf(path);
    const older = join(olderFolder, path);
    const file = {
      kind: kindOf(path),
      path,
      olderFolder,
      older: existsSync(older) ? older : undefined,
      siblings: paths.filter((other) => other !== path && isAlike(other)),
      strangers: strangers.filter(isAlike),
    };
    const isOfJournal = file.kind === 'log' || file.kind === 'base';
    return { isBackup, source, file, isNewest: isOfJournal && path >= newestBase };
  });
}

async function copyForCase(from: string, to: string): Promise<void> {
  rmSync(to, { recursive: true, force: true });
  for (const path of filesIn(from)) {
    mkdirSync(dirname(join(to, path)), { recursive: true, mode: 0o700 });
    if (isShared(path)) linkSync(join(from, path), join(to, path));
    else await copyFile(join(from, path), join(to, path));
  }
}

/** The examination of the intact sample and of its older copy, by whether it is a backup. */
type Expected = ReadonlyMap<boolean, { readonly newer: Examination; readonly older: Examination }>;

async function examineIntact(
  folder: string,
  examiner: Examiner,
  isStoreOnly: boolean,
): Promise<Expected> {
  const examine = async (source: string, isBackup: boolean) => {
    const directory = join(folder, 'case');
    await copyForCase(join(folder, source), directory);
    const found = await examiner.examine({
      directory,
      isBackup,
      mayGetWorse: true,
      isStoreOnly,
    });
    const isIntact =
      found !== 'crashed' &&
      found.failure === null &&
      found.warnings.length === 0 &&
      found.verdict.failure === null &&
      found.verdict.findings.length === 0 &&
      found.later?.failure === null &&
      found.later.verdict?.findings.length === 0 &&
      found.answers.every(({ status }) => status === 200);
    if (!isIntact) throw new Error(`the sample is not intact: ${JSON.stringify(found, null, 2)}`);
    return found;
  };
  const pairOf = async (newer: string, older: string, isBackup: boolean) => ({
    newer: await examine(newer, isBackup),
    older: await examine(older, isBackup),
  });
  const expected = new Map([[false, await pairOf(NEWER, OLDER, false)]]);
  if (isStoreOnly) return expected;
  const [newer, older] = [join(BACKUPS, NEWER_BACKUP), join(BACKUPS, OLDER_BACKUP)];
  return expected.set(true, await pairOf(newer, older, true));
}

type Done = Damage & { readonly isBackup: boolean };

const fault = (what: string): Judged => ({ outcome: 'fault', fault: what });

function judge(found: Examination | 'crashed', done: Done, expectations: Expected): Judged {
  if (found === 'crashed') return fault('the process ended');
  const { verdict, failure } = found;
  const isFoundByVerify = verdict.failure !== null || verdict.errorCount > 0;
  if (verdict.failure !== null) {
    const unclear = unclearIn(verdict.failure, done);
    if (unclear !== undefined) return fault(`verify fails with ${unclear}`);
  }
  if (done.isBackup && isFoundByVerify) return { outcome: 'refused by restore' };
  if (failure !== null) {
    const unclear = unclearIn(failure, done);
    if (unclear !== undefined) return fault(`the start fails with ${unclear}`);
    // Without its marker, a backup is a data directory.
    if (done.isBackup) return { outcome: 'refused by restore' };
    if (!isFoundByVerify) return fault(`verify does not find it; the start: ${failure.message}`);
    return { outcome: 'refused at the start' };
  }
  const { newer, older } = expectations.get(done.isBackup)!;
  const judged = judgeAnswers(found, newer, done);
  if (judged.outcome !== 'fault' || !done.isEarlierState) return judged;
  if (judgeAnswers(found, older, done).outcome !== 'fault') return { outcome: 'an earlier state' };
  // The result is between both states. A warning says that commits were not marked.
  const isSaid = found.warnings.some((warning) => /commits? behind the store/.test(warning));
  return isSaid ? { outcome: 'an earlier state' } : judged;
}

function judgeAnswers(
  { verdict, warnings, answers, later }: Examination,
  expected: Examination,
  done: Done,
): Judged {
  const isFoundByVerify = verdict.errorCount > 0;
  const wrong = firstWrong(answers, expected.answers, done);
  if (wrong !== undefined) return fault(wrong);
  if (answers.some(({ status }) => status >= 500)) {
    if (!isFoundByVerify) return fault('verify does not find it; collections are unavailable');
    return { outcome: 'refused by collections' };
  }
  const judgedLater = judgeLater(later, expected, { done, isFoundByVerify });
  if (judgedLater !== undefined) return fault(`later: ${judgedLater}`);
  if (warnings.length > 0) return { outcome: 'repaired' };
  return { outcome: isFoundByVerify ? 'without effect, but reported' : 'without effect' };
}

function judgeLater(
  later: Examination['later'],
  expected: Examination,
  { done, isFoundByVerify }: { done: Done; isFoundByVerify: boolean },
): string | undefined {
  if (later === null) return undefined;
  if (later.failure !== null) return later.failure.message;
  if (later.verdict!.errorCount > 0 && !isFoundByVerify) {
    return `verify finds ${later.verdict!.findings.join('; ')}`;
  }
  return firstWrong(later.answers, expected.later!.answers, done);
}

const ADVICE = /restore|verify|another (directory|backup)|start the version|delete/i;
const SAYS_WHERE = /at offset \d+|it is missing|store\.mark was written for/;

/** What is missing in the message; undefined if it names a file and an offset and says what to do. */
function unclearIn({ code, message }: Failure, { suspects }: Done): string | undefined {
  if (code === null) return `an error without code: ${message}`;
  if (!ADVICE.test(message)) return `a message that does not say what to do: ${message}`;
  // Messages to clients contain no paths.
  if (message.includes('The log of the service has the cause')) return undefined;
  if (!suspects.some((name) => message.includes(name))) {
    return `a message that does not name ${suspects.join(' or ')}: ${message}`;
  }
  if (/journal\/\d+\./.test(message) && !SAYS_WHERE.test(message)) {
    return `a message that does not say where in the file: ${message}`;
  }
  return undefined;
}

/** The first answer that is neither the expected one nor a refusal. */
function firstWrong(
  answers: readonly Answer[],
  expected: readonly Answer[],
  done: Done,
): string | undefined {
  for (const [i, { question, status, text }] of answers.entries()) {
    const intact = expected[i]?.text ?? '{}';
    if (status === expected[i]?.status && text === intact) continue;
    if (status < 500) {
      if (saysThatCollectionsFailed(text, intact)) continue;
      return `${question}: found ${status} ${text.slice(0, 600)}, expected ${intact.slice(0, 600)}`;
    }
    const unclear = unclearIn(failureOf(text), done);
    if (unclear !== undefined) return `${question}: ${status} with ${unclear}`;
  }
  return undefined;
}

function failureOf(text: string): Failure {
  const { code, detail } = JSON.parse(text) as { code: string | null; detail: string };
  return { code, message: detail };
}

interface CollectionRecord {
  readonly id?: string;
  readonly status?: string;
}

/** Records of collections that are not loaded say so, and lack what only their data contains. */
function saysThatCollectionsFailed(text: string, intact: string): boolean {
  // Digests of a store are not JSON.
  if (!text.startsWith('{')) return false;
  const recordsIn = (json: string): readonly CollectionRecord[] => {
    const reply = JSON.parse(json) as CollectionRecord & { collections?: CollectionRecord[] };
    return reply.collections ?? [reply];
  };
  const expected = recordsIn(intact);
  const found = recordsIn(text);
  const isAsExpected = (record: CollectionRecord, i: number) =>
    record.id === expected[i]!.id &&
    (record.status === 'failed' || JSON.stringify(record) === JSON.stringify(expected[i]));
  return found.length === expected.length && found.every(isAsExpected);
}

class Examiner {
  #child: ChildProcess | undefined;

  async examine(input: ExaminerInput): Promise<Examination | 'crashed'> {
    this.#child ??= fork(EXAMINER, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const child = this.#child;
    const deadline = setTimeout(() => child.kill('SIGKILL'), EXAMINATION_MS_MAX);
    const abort = new AbortController();
    const { signal } = abort;
    const ended = once(child, 'exit', { signal }).then(() => 'crashed' as const);
    const answered = once(child, 'message', { signal }).then(([found]) => found as Examination);
    child.send(input);
    const found = await Promise.race([ended, answered]);
    abort.abort();
    await Promise.allSettled([ended, answered]);
    clearTimeout(deadline);
    if (found === 'crashed') this.#child = undefined;
    return found;
  }

  close(): void {
    this.#child?.disconnect();
  }
}
