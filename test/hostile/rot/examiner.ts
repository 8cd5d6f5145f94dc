// A process that examines directories one after another: the findings of `sagitta verify`, whether the service starts,
// its answers, and how it continues after further writes. Damage may crash the process, which its parent notices.

import { rmSync } from 'node:fs';
import { verifyDirectory } from '../../../src/offline.js';
import { restoreBackup } from '../../../src/storage/backup.js';
import { type Examination, failureOf, type Verdict } from './examination.js';
import { examineStore } from './examine-store.js';
import { ask, type OpenSample, openSample, writeMore } from './sample.js';

export interface ExaminerInput {
  readonly directory: string;
  /** Whether it is a backup, which is verified and then restored. */
  readonly isBackup: boolean;
  /** Whether further writes could make overlooked damage worse. */
  readonly mayGetWorse: boolean;
  /** Whether only the store is examined, without the service. */
  readonly isStoreOnly: boolean;
}

async function verify(directory: string): Promise<Verdict> {
  try {
    const { findings, errorCount } = await verifyDirectory(directory);
    const lines = findings.map(({ severity, where, what }) => `${severity}: ${where}: ${what}`);
    return { findings: lines, errorCount, failure: null };
  } catch (error) {
    return { findings: [], errorCount: 0, failure: failureOf(error) };
  }
}

async function examine({ directory, isBackup, mayGetWorse }: ExaminerInput): Promise<Examination> {
  const verdict = await verify(directory);
  const warnings: string[] = [];
  const nothing = { verdict, warnings, answers: [], later: null };
  let used = directory;
  if (isBackup) {
    // Like the command, which verifies a backup before it restores it.
    if (verdict.failure !== null || verdict.errorCount > 0) return { ...nothing, failure: null };
    used = `${directory}-restored`;
    rmSync(used, { recursive: true, force: true });
    try {
      await restoreBackup(directory, used);
    } catch (error) {
      return { ...nothing, failure: failureOf(error) };
    }
  }
  let sample: OpenSample;
  try {
    sample = await openSample(used, (message) => warnings.push(message));
  } catch (error) {
    return { ...nothing, failure: failureOf(error) };
  }
  const answers = await ask(sample);
  const isWhole = answers.every(({ status }) => status < 500);
  const isContinued = isWhole && mayGetWorse;
  const later = isContinued ? await goOn(sample, used) : null;
  if (!isContinued) await sample.close();
  return { verdict, failure: null, warnings, answers, later };
}

async function goOn(sample: OpenSample, directory: string): Promise<Examination['later']> {
  try {
    await writeMore(sample);
    await sample.close();
    const verdict = await verify(directory);
    const again = await openSample(directory, () => {});
    const answers = await ask(again);
    await again.close();
    return { failure: null, answers, verdict };
  } catch (error) {
    await sample.close().catch(() => {});
    return { failure: failureOf(error), answers: [], verdict: null };
  }
}

process.on('message', (input: ExaminerInput) => {
  const examining = input.isStoreOnly ? examineStore(input.directory) : examine(input);
  examining.then(
    (examination) => process.send!(examination),
    // Anything unexpected ends the process, like a crash.
    (error: unknown) => {
      console.error(error);
      process.exit(70);
    },
  );
});
process.once('disconnect', () => process.exit(0));
