// The keys of the store and what is stored under each. Data of a collection is stored by incarnation,
// not by id, so that a new collection with an old id shares nothing with its predecessor.

import type { StoreKey, StoreOperation } from '../../storage/store.js';

/** Digits of the largest sequence. Leading zeros make text order equal to numeric order. */
const SEQUENCE_DIGITS = 16;

export const keys = {
  /** The catalogue: a CollectionDefinition as JSON. */
  collection: (id: string): StoreKey => ['collection', id],
  collections: ['collection'] as StoreKey,
  /** Additional names of collections: an AliasEntry as JSON. */
  alias: (name: string): StoreKey => ['alias', name],
  aliases: ['alias'] as StoreKey,
  /** The segment files that make up a collection: a Manifest as JSON. */
  manifest: (incarnation: string): StoreKey => ['manifest', incarnation],
  manifests: ['manifest'] as StoreKey,
  /** A segment file that the write with this sequence adds, until a manifest names it: an AddedFile as JSON. */
  addedFile: (incarnation: string, sequence: number): StoreKey => [
    'file',
    incarnation,
    String(sequence).padStart(SEQUENCE_DIGITS, '0'),
  ],
  addedFiles: (incarnation: string): StoreKey => ['file', incarnation],
  allAddedFiles: ['file'] as StoreKey,
  /** Deletions in sealed segments: one entry per checkpoint, with the deletions since the previous one. */
  deletions: (incarnation: string, segmentNumber: number, throughSequence: number): StoreKey => [
    'deletions',
    incarnation,
    String(segmentNumber),
    String(throughSequence).padStart(SEQUENCE_DIGITS, '0'),
  ],
  deletionsOfSegment: (incarnation: string, segmentNumber: number): StoreKey => [
    'deletions',
    incarnation,
    String(segmentNumber),
  ],
  /** The times at which rows of the write with this sequence expire. */
  expiries: (incarnation: string, sequence: number): StoreKey => [
    'expiry',
    incarnation,
    String(sequence).padStart(SEQUENCE_DIGITS, '0'),
  ],
  expiriesOfCollection: (incarnation: string): StoreKey => ['expiry', incarnation],
  allExpiries: ['expiry'] as StoreKey,
  deletionsOfCollection: (incarnation: string): StoreKey => ['deletions', incarnation],
  allDeletions: ['deletions'] as StoreKey,
  /** Marks a collection whose rows only other nodes of the cluster hold. */
  absence: (incarnation: string): StoreKey => ['absent', incarnation],
  absences: ['absent'] as StoreKey,
  /** 32 random bytes that seal the cursors of this data directory. */
  cursorSecret: ['secret', 'cursor'] as StoreKey,
  /** API keys without their secrets: an ApiKeyEntry as JSON. */
  apiKey: (id: string): StoreKey => ['key', id],
  apiKeys: ['key'] as StoreKey,
  /** The newest audit events: an AuditEvent as JSON. */
  auditEvent: (sequence: number): StoreKey => [
    'audit',
    String(sequence).padStart(SEQUENCE_DIGITS, '0'),
  ],
  auditEvents: ['audit'] as StoreKey,
  /** Replies under idempotency keys, by the digest of scope and key. */
  idempotentReply: (digest: string): StoreKey => ['idempotency', 'reply', digest],
  idempotentReplies: ['idempotency', 'reply'] as StoreKey,
  /** The order in which these replies expire. */
  idempotentExpiry: (expiresAtMs: number, digest: string): StoreKey => [
    'idempotency',
    'expiry',
    String(expiresAtMs).padStart(SEQUENCE_DIGITS, '0'),
    digest,
  ],
  idempotentExpiries: ['idempotency', 'expiry'] as StoreKey,
} as const;

export const logName = (incarnation: string): string => incarnation;

export const segmentBlobName = (incarnation: string, segmentNumber: number): string =>
  `${incarnation}/${segmentNumber}.arrow`;

/** The puts and removals of keys under a prefix; `value` is null for a removal. */
export function* changesUnder(
  prefix: StoreKey,
  operations: readonly StoreOperation[],
): Iterable<{ readonly key: StoreKey; readonly value: Uint8Array | null }> {
  for (const operation of operations) {
    if (operation.kind !== 'put' && operation.kind !== 'remove') continue;
    const { key } = operation;
    if (!prefix.every((part, i) => key[i] === part)) continue;
    yield { key, value: operation.kind === 'put' ? operation.value : null };
  }
}

/** Where a store keeps the data of one collection, apart from its entry in the catalogue. */
export const storedParts = (incarnation: string) => ({
  prefixes: [
    keys.manifest(incarnation),
    keys.addedFiles(incarnation),
    keys.deletionsOfCollection(incarnation),
    keys.expiriesOfCollection(incarnation),
  ],
  log: logName(incarnation),
  blobPrefix: blobsOf(incarnation),
  absence: keys.absence(incarnation),
});

export const blobsOf = (incarnation: string): string => `${incarnation}/`;
