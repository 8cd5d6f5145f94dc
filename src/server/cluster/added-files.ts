// Lets the owner of a collection's log commit the files that another node has made of the rows of a bulk stream.

import { setTimeout as sleep } from 'node:timers/promises';
import { OPERATOR } from '../../common/access.js';
import { type ErrorCode, noLeaderError, SagittaError } from '../../common/errors.js';
import type { WriteResult } from '../../database/api/database-api.js';
import type { FileToAdd } from '../../database/collection/file-write.js';
import type { Database } from '../../database/database.js';
import type { LogPositions } from '../wire/consistency.js';
import type { Cluster } from './cluster.js';
import { OutcomeUnknownError } from './node-client.js';
import { OWNER_MS_MAX, type RequestForwarder } from './request-forwarder.js';

export const ADDED_FILES_PATH = '/cluster/added-files';

/** The pause before a node is asked again that was no longer the owner. */
const RETRY_MS = 100;
/** The owner reads the file before it commits it. */
const ANSWER_MS_MAX = 60_000;

interface Services {
  readonly database: Pick<Database, 'addFile'>;
  readonly forwarder: Pick<RequestForwarder, 'ask' | 'beginWrite' | 'whenApplied'> & {
    readonly cluster: Pick<Cluster, 'ownerOf' | 'owns' | 'beginWrite'> & {
      readonly progress: Pick<Cluster['progress'], 'positionsOf'>;
    };
  };
}

/** The body of a request to the owner. */
export interface EncodedFile extends Omit<FileToAdd, 'expiresAtMs'> {
  readonly incarnation: string;
  /** The bytes of float64 numbers, in base64. */
  readonly expiresAtMs: string | null;
}

interface AddedReply extends WriteResult {
  /** How far the owner has applied the log. */
  readonly positions: LogPositions;
}

/**
 * Resolves when the rows of the file are committed and applied on this node. Rejects with `outcome_unknown` if they may
 * have been added, and with other errors of the owner, `no_leader` or the reason of the signal if they were not.
 */
export async function commitFile(
  { database, forwarder }: Services,
  incarnation: string,
  file: FileToAdd,
  signal: AbortSignal,
): Promise<WriteResult> {
  const deadlineMs = performance.now() + OWNER_MS_MAX;
  for (;;) {
    signal.throwIfAborted();
    const end = await forwarder.beginWrite(incarnation, null);
    try {
      if (end !== null) return await database.addFile(incarnation, file);
    } finally {
      end?.();
    }
    try {
      const { positions, ...result } = await askOwner(forwarder, incarnation, file);
      const applied = { incarnations: [incarnation], isRead: false, signal };
      await forwarder.whenApplied(positions, applied);
      return result;
    } catch (error) {
      // Another node may have become the owner.
      const isRefused = error instanceof SagittaError && error.code === 'no_leader';
      if (!isRefused || performance.now() > deadlineMs) throw error;
      await sleep(RETRY_MS);
    }
  }
}

async function askOwner(
  forwarder: Services['forwarder'],
  incarnation: string,
  { file, shape, expiresAtMs }: FileToAdd,
): Promise<AddedReply> {
  const owner = forwarder.cluster.ownerOf(incarnation);
  if (owner === null) throw noLeaderError();
  const times = expiresAtMs && Buffer.from(expiresAtMs.buffer as ArrayBuffer).toString('base64');
  const body: EncodedFile = { incarnation, file, shape, expiresAtMs: times };
  const path = ADDED_FILES_PATH;
  const request = { method: 'POST', path, body: JSON.stringify(body) } as const;
  const reply = await forwarder
    .ask(owner, { ...request, principal: OPERATOR }, AbortSignal.timeout(ANSWER_MS_MAX))
    .catch((error: NodeJS.ErrnoException) => {
      if (error instanceof SagittaError) throw error;
      throw error.code === 'ECONNREFUSED' ? noLeaderError(error) : new OutcomeUnknownError(error);
    });
  if (reply.status === 200) return JSON.parse(reply.text) as AddedReply;
  throw refusal(reply.text, owner.node);
}

/** The error of the owner. */
function refusal(text: string, node: string): Error {
  const problem = JSON.parse(text) as { code?: ErrorCode; detail?: string };
  if (problem.code === undefined) return new OutcomeUnknownError(new Error(`${node}: ${text}`));
  return new SagittaError(problem.code, problem.detail ?? `${node} refused the file.`);
}

/** Answers such a request. Throws `no_leader` if this node is not the owner, and like `Database.addFile`. */
export async function addFileForPeer(
  { database, forwarder: { cluster } }: Services,
  encoded: EncodedFile,
): Promise<AddedReply> {
  const { incarnation } = encoded;
  if (!cluster.owns(incarnation)) throw noLeaderError();
  const end = cluster.beginWrite(incarnation);
  try {
    const result = await database.addFile(incarnation, decodeFile(encoded));
    return { ...result, positions: cluster.progress.positionsOf([incarnation]) };
  } finally {
    end();
  }
}

function decodeFile({ file, shape, expiresAtMs }: EncodedFile): FileToAdd {
  const times =
    expiresAtMs === null ? null : Uint8Array.from(Buffer.from(expiresAtMs, 'base64')).buffer;
  return { file, shape, expiresAtMs: times && new Float64Array(times) };
}
