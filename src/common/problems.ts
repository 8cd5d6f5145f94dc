// What is wrong with a running service, for operators: `/readyz`, `/metrics`, and the status of a cluster say it alike.

/** Meanings by code. A code is part of the API: it is never reused for another meaning. */
export const PROBLEM_MEANINGS = {
  starting: 'its sample data is being loaded',
  stopping: 'it finishes accepted requests and refuses new ones',
  disk_full: 'the disk with the data directory has no space for writes',
  disk_failed: 'the disk with the data directory refuses writes for another reason',
  disk_stalled: 'the disk with the data directory does not answer',
  nats_disconnected: 'the node has no connection to the NATS servers',
  nats_no_quorum: 'fewer than most of the NATS servers that store a log answer',
  peer_unreachable: 'the node cannot connect to another one that announces itself',
  no_leader: 'no node that this one hears from carries out changes of the catalogue',
  deposed: 'another node has taken over from this one, which has not noticed yet',
  store_failed: 'the node could not store what the logs contain, and leaves writes to other nodes',
  log_failed: 'the node cannot follow a log',
  log_stalled: 'writes to some collections wait for their logs, or for a node that takes over',
  archive_late: 'what the node commits is not archived in the shared files',
  durability: 'the NATS servers may lose what they acknowledge, or could not be checked',
} as const;

export type ProblemCode = keyof typeof PROBLEM_MEANINGS;

export const PROBLEM_CODES = Object.keys(PROBLEM_MEANINGS) as readonly ProblemCode[];

export interface ServiceProblem {
  readonly code: ProblemCode;
  /** Sentences for operators: what was found, and what to do. */
  readonly detail: string;
  /** How long it has lasted. */
  readonly seconds: number;
  /** Whether writes through this process fail or wait because of it. */
  readonly blocksWrites: boolean;
}

/** Whether writes through a process with these problems succeed. */
export function isWritable(problems: readonly ServiceProblem[]): boolean {
  return !problems.some(({ blocksWrites }) => blocksWrites);
}

/** A duration as replies about states give it: in seconds, to a tenth. */
export function toSeconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
