// Bugs that a simulation must find: each replaces code of a compiled module in src. `node
// dist/test/cluster/simulation/find-mutations.js` tries them.

export interface Mutation {
  /** What the mutated code does wrong. */
  readonly name: string;
  /** The compiled module, in dist. */
  readonly file: string;
  /** Code that occurs once, and what replaces it. */
  readonly from: string;
  readonly to: string;
}

const CHAINED_LOG = 'src/cluster/logs/chained-log.js';
const CHAIN_READER = 'src/cluster/logs/chain-reader.js';
const REPLICATED_LOG = 'src/cluster/replication/replicated-log.js';
const PROGRESS = 'src/cluster/replication/log-progress.js';
const SNAPSHOTTER = 'src/cluster/snapshots/snapshotter.js';

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'a commit that got no reply counts as committed',
    file: CHAINED_LOG,
    from: "this.#unknownId = id;\n            return { kind: 'unknown', cause: error };",
    to: "return { kind: 'committed', link: this.#head };",
  },
  {
    name: 'a commit that got no reply counts as absent',
    file: CHAINED_LOG,
    from: "this.#unknownId = id;\n            return { kind: 'unknown', cause: error };",
    to: "return { kind: 'absent', cause: error };",
  },
  {
    name: 'a commit that is not in the log counts as absent without a mark',
    file: CHAINED_LOG,
    from: 'this.#advance(await this.#log.publishRecord(mark, this.#headPosition));\n',
    to: '',
  },
  {
    name: 'a writer does not notice claims and epochs of others when it settles a commit',
    file: CHAINED_LOG,
    from: 'if (epoch > this.epoch) {',
    to: 'if (false) {',
  },
  {
    name: 'a node takes a log over without a record of the epoch',
    file: CHAINED_LOG,
    from: 'link = await this.publishRecord(record, headPosition);\n',
    to: 'link = { ...link, position: headPosition, epoch };\n',
  },
  {
    name: 'records are appended wherever the head is',
    file: CHAINED_LOG,
    from: 'await this.#stream.publish(messages, headPosition);',
    to: 'await this.#stream.publish(messages, null);',
  },
  {
    name: 'a reader does not compare digests and positions of the chain',
    file: CHAIN_READER,
    from: 'requirePrevious(record, head, where);\n',
    to: '',
  },
  {
    name: 'a reader does not notice missing messages',
    file: CHAIN_READER,
    from: 'if (position - ownCount !== lastPosition)',
    to: 'if (false)',
  },
  {
    name: 'a node that takes over does not apply what others have committed',
    file: REPLICATED_LOG,
    from: 'await this.#applyAndStore(records);\n                    }\n                    catch (error) {\n                        // Other',
    to: '}\n                    catch (error) {\n                        // Other',
  },
  {
    name: 'an owner whose store failed goes on',
    file: REPLICATED_LOG,
    from: 'await this.#giveUp(writer);\n                    throw notStored(error);',
    to: '',
  },
  {
    name: 'a commit is stored although the one before it was not',
    file: REPLICATED_LOG,
    from: 'await this.#storing;\n        const { store, mayRunAhead } = this.#options;',
    to: 'await this.#storing?.catch(() => {});\n        const { store, mayRunAhead } = this.#options;',
  },
  {
    name: 'the position of a log is not stored with its records',
    file: REPLICATED_LOG,
    from: 'const applying = apply([...operations, positionOperation]);',
    to: 'const applying = apply(operations);',
  },
  {
    name: 'a strong read does not wait for its barrier',
    file: REPLICATED_LOG,
    from: 'return await this.whenApplied(position, AbortSignal.any([became, closing]));',
    to: 'return;',
  },
  {
    name: 'an owner answers strong reads without asking the log',
    file: REPLICATED_LOG,
    from: 'return await this.commit([]);',
    to: 'return;',
  },
  {
    name: 'a read does not wait for what its client has seen',
    file: PROGRESS,
    from: 'if (log === undefined || log.recordPosition >= position)',
    to: 'if (true)',
  },
  {
    name: 'a log is trimmed to its end, beyond the newest snapshot and the archive',
    file: SNAPSHOTTER,
    from: 'const before = Math.min(base?.position ?? 0, archivedPosition);',
    to: 'const before = log.link.position;',
  },
  {
    name: 'archived chunks are removed that the previous snapshot needs',
    file: SNAPSHOTTER,
    from: 'await archiver.removeThrough(logName, previous.previous.position);',
    to: 'await archiver.removeThrough(logName, link.position);',
  },
  {
    name: 'a snapshot may lack files that its record names',
    file: SNAPSHOTTER,
    from: 'const kept = base === null ? [taken.name] : [taken.name, base.name];',
    to: 'const kept = base === null ? [] : [base.name];',
  },
  {
    name: 'the reply under an idempotency key is not stored',
    file: 'src/database/admin/idempotency.js',
    from: 'return claim.storeReply(encode(result));',
    to: 'return [];',
  },
  {
    name: 'a write is applied and confirmed before it is committed',
    file: 'src/database/collection/writer.js',
    from: 'await log.commit(operations);',
    to: 'log.commit(operations).catch(() => {});',
  },
  {
    name: 'an owner does not name a file before it commits the record',
    file: 'src/database/collection/file-write.js',
    from: 'await addedFiles.nameAhead(staged, sequence);',
    to: 'addedFiles.naming(staged, sequence);',
  },
  {
    name: 'files are not named again with records that the store lacked',
    file: 'src/database/collection/follow.js',
    from: 'addedFiles.namingAgain(sequence)',
    to: '[]',
  },
  {
    name: 'a follower holds back writes while it commits a manifest',
    file: 'src/database/collection/maintenance.js',
    from: 'this.#files.isCommitting',
    to: 'false',
  },
  {
    name: 'files that records name are removed with the next snapshot',
    file: SNAPSHOTTER,
    from: 'previous?.earlierPosition ?? 0);',
    to: 'Number.POSITIVE_INFINITY);',
  },
  {
    name: 'a deposed owner is not told',
    file: 'src/cluster/replication/ownership.js',
    from: 'if (isNew || (catalogue.isWritable && epoch > catalogue.epoch))',
    to: 'if (false)',
  },
  {
    name: 'a node that failed to take over does not try again',
    file: 'src/cluster/replication/elections.js',
    from: 'election.notBeforeMs = performance.now() + RETRY_MS;',
    to: 'election.notBeforeMs = Infinity;',
  },
];
