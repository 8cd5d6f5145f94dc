// Commits of another node to the log of a collection, as writes that are stored and applied on this node.

import { SagittaError } from '../../common/errors.js';
import { decodeLogRecord } from '../../segment/log-record.js';
import type { StoreOperation } from '../../storage/store.js';
import { logName } from '../layout/keys.js';
import type { StagedFile } from './added-files.js';
import type { Collection } from './collection.js';
import type { Write } from './writer.js';
import { applyLogRecord } from './writes.js';

/**
 * The write for all operations of one commit. Preparing it throws `data_corrupt` if records are missing, and what fetching
 * files throws.
 */
export function followedWrite(
  collection: Collection,
  operations: readonly StoreOperation[],
): Write<void> {
  return {
    async prepare(firstSequence) {
      const { addedFiles } = collection;
      const fresh = withoutApplied(operations, collection, firstSequence);
      const records = recordsIn(fresh, collection).map(({ sequence, record }) => ({
        sequence,
        record: decodeLogRecord(record),
      }));
      for (const [i, { sequence }] of records.entries()) {
        if (sequence !== firstSequence + i)
          throw outOfOrder(collection, sequence, firstSequence + i);
      }
      const staged = new Map<number, StagedFile>();
      const staging = records.map(async ({ sequence, record }) => {
        if (record.kind === 'file') staged.set(sequence, await addedFiles.stage(record.file));
      });
      await Promise.all(staging);
      // The store has neither the records that memory has, nor the names of their files.
      const missing = operations.length - fresh.length;
      const again = recordsIn(operations.slice(0, missing), collection).flatMap(({ sequence }) =>
        addedFiles.namingAgain(sequence),
      );
      const fromHere = [...staged].map(([sequence, file]) => addedFiles.naming(file, sequence));
      const naming = [...again, ...fromHere];
      const last = records.at(-1);
      return {
        ...(last !== undefined && {
          last: { sequence: last.sequence, timeMs: last.record.timeMs },
        }),
        operations: [...naming, ...operations],
        batches: records.flatMap(({ record }) => (record.kind === 'write' ? record.batch : [])),
        result: undefined,
        apply() {
          for (const { record, sequence } of records) {
            if (record.kind === 'file') addedFiles.apply(staged.get(sequence)!, sequence);
            else applyLogRecord(collection.rows, record, sequence);
          }
          collection.expiries.follow(fresh);
        },
      };
    },
  };
}

type Append = Extract<StoreOperation, { kind: 'append' }>;

function recordsIn(operations: readonly StoreOperation[], { incarnation }: Collection): Append[] {
  const log = logName(incarnation);
  return operations.filter(
    (operation): operation is Append => operation.kind === 'append' && operation.log === log,
  );
}

/** Memory already contains the first records if they were applied while the store could not accept them. */
function withoutApplied(
  operations: readonly StoreOperation[],
  collection: Collection,
  firstSequence: number,
): readonly StoreOperation[] {
  const records = recordsIn(operations, collection);
  if (records.every(({ sequence }) => sequence >= firstSequence)) return operations;
  const next = records.find(({ sequence }) => sequence >= firstSequence);
  return next === undefined ? [] : operations.slice(operations.indexOf(next));
}

function outOfOrder({ definition }: Collection, found: number, expected: number): SagittaError {
  return new SagittaError(
    'data_corrupt',
    `The log of collection "${definition.id}" has a record with sequence ${found}; expected ${expected}. This node must load the collection again.`,
  );
}
