// Examines a data directory below the service: the values and logs of its store. It takes a fraction of the time, so
// many thousands of cases of damage can be tried.

import { createHash } from 'node:crypto';
import { SagittaError } from '../../../src/common/errors.js';
import { keys, logName } from '../../../src/database/layout/keys.js';
import type { CollectionDefinition } from '../../../src/database/layout/manifest.js';
import { openStore } from '../../../src/storage/open-store.js';
import type { DiskStore } from '../../../src/storage/store.js';
import { StoreInspection } from '../../../src/storage/store-inspection.js';
import { type Examination, failureOf, type Verdict } from './examination.js';
import { type Answer, LOG_BYTES_MAX } from './sample.js';

const ROUNDS = 3;

export async function examineStore(directory: string): Promise<Examination> {
  const verdict = await inspect(directory);
  const warnings: string[] = [];
  let store: DiskStore;
  try {
    store = await openStore({
      directory,
      warn: (message) => warnings.push(message),
      logBytesMax: LOG_BYTES_MAX,
    });
  } catch (error) {
    return { verdict, failure: failureOf(error), warnings, answers: [], later: null };
  }
  const answers = readAll(store);
  const isWhole = answers.every(({ status }) => status === 200);
  const later = isWhole ? await goOn(store, directory) : null;
  if (!isWhole) await store.close();
  return { verdict, failure: null, warnings, answers, later };
}

async function inspect(directory: string): Promise<Verdict> {
  const findings: string[] = [];
  let errorCount = 0;
  try {
    const inspection = await StoreInspection.open(directory, ({ severity, where, what }) => {
      findings.push(`${severity}: ${where}: ${what}`);
      if (severity === 'error') errorCount++;
    });
    await inspection.close();
    return { findings, errorCount, failure: null };
  } catch (error) {
    return { findings, errorCount, failure: failureOf(error) };
  }
}

function incarnationsOf(store: DiskStore): string[] {
  return [...store.list(keys.collections)].map(({ value }) => {
    const definition = JSON.parse(Buffer.from(value).toString()) as CollectionDefinition;
    return definition.incarnation;
  });
}

/** Digests of all values, and of each log. */
function readAll(store: DiskStore): Answer[] {
  const answer = (question: string, read: (add: (bytes: Uint8Array | string) => void) => void) => {
    const hash = createHash('sha256');
    try {
      read((bytes) => hash.update(bytes));
      return { question, status: 200, text: hash.digest('hex') };
    } catch (error) {
      if (!(error instanceof SagittaError)) throw error;
      const text = JSON.stringify({ code: error.code, detail: error.message });
      return { question, status: 500, text };
    }
  };
  const values = answer('values', (add) => {
    for (const { key, value } of store.list([])) {
      add(key.join('/'));
      add(value);
    }
  });
  if (values.status !== 200) return [values];
  const logs = incarnationsOf(store).map((incarnation) =>
    answer(`log ${incarnation}`, (add) => {
      for (const { sequence, record } of store.readLog(logName(incarnation), 0)) {
        add(`${sequence}`);
        add(record);
      }
    }),
  );
  return [values, ...logs];
}

/** Replaces and removes values, and adds enough records that new logs and bases follow and files are removed. */
async function goOn(store: DiskStore, directory: string): Promise<Examination['later']> {
  try {
    for (let round = 0; round < ROUNDS; round++) await writeRound(store, round);
    await store.close();
    const verdict = await inspect(directory);
    const again = await openStore({ directory, logBytesMax: LOG_BYTES_MAX });
    const answers = readAll(again);
    await again.close();
    return { failure: null, answers, verdict };
  } catch (error) {
    await store.close().catch(() => {});
    return { failure: failureOf(error), answers: [], verdict: null };
  }
}

async function writeRound(store: DiskStore, round: number): Promise<void> {
  const [log] = incarnationsOf(store);
  for (const byteLength of [50, 3_000, 20_000, 90_000]) {
    const key = ['more', `${byteLength}`];
    await store.commit([{ kind: 'put', key, value: new Uint8Array(byteLength).fill(round) }]);
  }
  const sequence = 1_000_000 + round;
  const record = new Uint8Array(30_000).fill(round);
  await store.commit([{ kind: 'append', log: logName(log!), sequence, record }]);
  await store.commit([{ kind: 'remove', key: ['more', '3000'] }]);
}
