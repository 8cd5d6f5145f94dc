// `sagitta collections`: lists, creates, changes, shows, clones, renames and deletes collections.

import type {
  CollectionInput,
  CollectionRecord,
  FoundPath,
  NamedVectorInput,
  TypeCounts,
} from '@sagitta/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { ELEMENT_TYPES, type ElementType } from '../../common/elements.js';
import { printable } from '../../common/printable.js';
import { TEXT_LANGUAGES, type TextLanguage } from '../../common/text-settings.js';
import { type DeclaredTypes, METRICS, type Metric } from '../../common/types.js';
import { addReplyOptions, connect, type ReplyOptions } from '../service/connection.js';
import { ask, isInteractive } from '../terminal/confirmation.js';
import { usageError } from '../terminal/failure.js';
import {
  parseDuration,
  readJsonObject,
  splitNames,
  wholeNumber,
} from '../terminal/option-values.js';
import { print, write } from '../terminal/printing.js';
import { tableForStdout } from '../terminal/table.js';
import { formatCount, pluralize } from '../terminal/units.js';

const EXAMPLES = `
Examples:
  $ sagitta collections list
  $ sagitta collections create articles --dimension 768 --metric dot \\
      --label team=search
  $ sagitta collections create notes --dimension 384 \\
      --text-fields title,body --text-language english
  $ sagitta collections create letters --embed builtin
  $ sagitta collections create logs --text-fields message
  $ sagitta collections update articles --add-vector summary:384:cosine \\
      --drop-vector title
  $ sagitta collections show articles
  $ sagitta collections schema articles
  $ sagitta collections clone articles articles-copy
  $ sagitta collections rename articles-copy articles-2025
  $ sagitta collections delete articles`;

type NamedShapes = NonNullable<CollectionInput['vectors']>;
type SparseShapes = NonNullable<CollectionInput['sparse_vectors']>;

interface CreateOptions extends ReplyOptions {
  readonly dimension?: number;
  readonly metric?: Metric;
  readonly elementType?: ElementType;
  readonly vectors?: string;
  readonly sparseVectors?: string;
  readonly embed?: Model;
  readonly description?: string;
  readonly label?: Record<string, string>;
  readonly textFields?: readonly string[];
  readonly textLanguage?: TextLanguage;
  readonly ttl?: string;
  readonly replicationFactor?: number;
  readonly schema?: string;
}

type Model = CollectionInput['embed'];

interface UpdateOptions extends ReplyOptions {
  readonly description?: string;
  readonly embed?: Model;
  readonly addVector?: Readonly<Record<string, NamedVectorInput>>;
  readonly addSparseVector?: readonly string[];
  readonly dropVector?: readonly string[];
  readonly dropSparseVector?: readonly string[];
  readonly yes?: boolean;
}

const MODEL_HELP =
  'model that turns texts into vectors: builtin, or ENDPOINT=MODEL of a configured endpoint';

function parseModel(text: string): Model {
  if (text === 'none') return null;
  if (text === 'builtin') return text;
  const at = text.indexOf('=');
  if (at > 0) return { endpoint: text.slice(0, at), model: text.slice(at + 1) };
  throw new InvalidArgumentError(`Expected builtin, or ENDPOINT=MODEL; found ${text}.`);
}

export function defineCollections(command: Command): void {
  command.addHelpText('after', EXAMPLES);

  const list = command.command('list').description('list all collections in id order');
  addReplyOptions(list).action(listCollections);

  const create = command
    .command('create')
    .description('create an empty collection')
    .argument('<id>', 'collection id: letters, digits, _ . -')
    .option(
      '--dimension <n>',
      'number of values per vector; not needed with --vectors, --sparse-vectors or --text-fields',
      wholeNumber(1, 1e6),
    )
    .addOption(
      new Option('--metric <name>', 'similarity metric (default: cosine)').choices(METRICS),
    )
    .addOption(
      new Option(
        '--element-type <name>',
        'type of the elements of vectors (default: float32)',
      ).choices(ELEMENT_TYPES),
    )
    .option('--vectors <json|@file>', 'named vectors: {"title": {"dimension": 384}}')
    .option('--sparse-vectors <json|@file>', 'sparse vectors: {"words": {}}')
    .option('--embed <model>', `${MODEL_HELP}; builtin needs no --dimension`, parseModel)
    .option('--description <text>', 'free text')
    .option('--ttl <duration>', 'time after a write until the vector expires, such as 30d')
    .option(
      '--replication-factor <n>',
      'number of nodes of a cluster that hold it (default: all)',
      wholeNumber(1, 1_000),
    )
    .option('--schema <json|@file>', 'types of metadata by path: {"year": "integer"}')
    .option('--text-fields <names>', 'metadata fields for search by words', splitNames)
    .addOption(
      new Option('--text-language <name>', 'language of the text, for word stems').choices(
        TEXT_LANGUAGES,
      ),
    )
    .option('--label <name=value>', 'label; may be repeated', addLabel);
  addReplyOptions(create).action(createCollection);

  defineUpdate(command);

  const show = command
    .command('show')
    .description('show one collection')
    .argument('<id>', 'collection id');
  addReplyOptions(show).action(async (id: string, options: ReplyOptions) => {
    printRecord(await connect(options).collections.get(id), options);
  });

  const schema = command
    .command('schema')
    .description('show the metadata fields of the vectors, with types and ranges')
    .argument('<id>', 'collection id or alias');
  addReplyOptions(schema).action(showSchema);

  const clone = command
    .command('clone')
    .description('create a collection with the same vectors')
    .argument('<id>', 'collection id or alias')
    .argument('<new-id>', 'id of the clone');
  addReplyOptions(clone).action(async (id: string, newId: string, options: ReplyOptions) => {
    printRecord(await connect(options).collections.clone(id, { id: newId }), options);
  });

  const rename = command
    .command('rename')
    .description('give a collection another id')
    .argument('<id>', 'collection id or alias')
    .argument('<new-id>', 'new id of the collection');
  addReplyOptions(rename).action(async (id: string, newId: string, options: ReplyOptions) => {
    printRecord(await connect(options).collections.rename(id, newId), options);
  });

  const remove = command
    .command('delete')
    .description('delete a collection and all its vectors')
    .argument('<id>', 'collection id')
    .option('--yes', 'skip the confirmation');
  addReplyOptions(remove).action(deleteCollection);
}

function defineUpdate(command: Command): void {
  const update = command
    .command('update')
    .description('change the description or the model, add named vectors or drop them')
    .argument('<id>', 'collection id or alias')
    .option('--description <text>', 'free text')
    .option('--embed <model>', `${MODEL_HELP}, or none`, parseModel)
    .option(
      '--add-vector <name:dimension[:metric[:multi]]>',
      'named vector to add, such as summary:384 or tokens:128:dot:multi; may be repeated',
      addVector,
    )
    .option('--add-sparse-vector <names>', 'sparse vectors to add, comma-separated', splitNames)
    .option('--drop-vector <names>', 'named vectors to drop from all vectors', splitNames)
    .option('--drop-sparse-vector <names>', 'sparse vectors to drop', splitNames)
    .option('--yes', 'skip the confirmation of --drop-vector and --drop-sparse-vector');
  addReplyOptions(update).action(updateCollection);
}

async function showSchema(id: string, options: ReplyOptions): Promise<void> {
  const vectors = connect(options).collection(id);
  let page = await vectors.schema();
  const paths = [...page.paths];
  while (page.next_after !== undefined) {
    page = await vectors.schema({ after: page.next_after });
    paths.push(...page.paths);
  }
  print(paths, options, () => describePaths(paths));
}

function describePaths(paths: readonly FoundPath[]): string {
  if (paths.length === 0) return 'No metadata.';
  const columns = [
    { title: 'path' },
    { title: 'vectors', align: 'right' } as const,
    { title: 'types' },
    { title: 'distinct', align: 'right' } as const,
    { title: 'min', align: 'right' } as const,
    { title: 'max', align: 'right' } as const,
  ];
  const rows = paths.map((found) => [
    found.path,
    formatCount(found.count),
    typesText(found),
    `${found.is_distinct_exact ? '' : '≥ '}${formatCount(found.distinct_count)}`,
    found.min === undefined ? '' : String(found.min),
    found.max === undefined ? '' : String(found.max),
  ]);
  return tableForStdout(columns, rows);
}

/** `number, array of string` */
function typesText({ types, element_types }: FoundPath): string {
  const namesOf = (counts: TypeCounts) =>
    Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [name] : []));
  const elements = element_types === undefined ? [] : namesOf(element_types);
  return namesOf(types)
    .map((name) =>
      name === 'array' && elements.length > 0 ? `array of ${elements.join(' or ')}` : name,
    )
    .join(', ');
}

async function listCollections(options: ReplyOptions): Promise<void> {
  const records: CollectionRecord[] = [];
  for await (const page of connect(options).collections.pages()) records.push(...page.collections);
  print(records, options, () => describeAll(records));
}

function describeAll(records: readonly CollectionRecord[]): string {
  if (records.length === 0) return 'No collections.';
  const columns = [
    { title: 'id' },
    { title: 'vectors', align: 'right' } as const,
    { title: 'dimension', align: 'right' } as const,
    ...['metric', 'status', 'engine', 'description'].map((title) => ({ title })),
  ];
  const rows = records.map((record) => [
    record.id,
    formatCount(record.vector_count),
    record.dimension === undefined ? '' : String(record.dimension),
    record.metric ?? '',
    record.status,
    record.engine.name,
    record.description ?? '',
  ]);
  return tableForStdout(columns, rows);
}

async function createCollection(id: string, options: CreateOptions): Promise<void> {
  const { dimension, metric, elementType, vectors, description, label, ttl, schema } = options;
  const { sparseVectors, textFields, textLanguage } = options;
  if (textLanguage !== undefined && textFields === undefined) {
    throw usageError('--text-language requires --text-fields');
  }
  const record = await connect(options).collections.create({
    id,
    ...(dimension !== undefined && { dimension }),
    ...(metric !== undefined && { metric }),
    ...(elementType !== undefined && { element_type: elementType }),
    ...(vectors !== undefined && {
      vectors: readJsonObject<NamedShapes>('--vectors', vectors),
    }),
    ...(sparseVectors !== undefined && {
      sparse_vectors: readJsonObject<SparseShapes>('--sparse-vectors', sparseVectors),
    }),
    ...(options.embed !== undefined && { embed: options.embed }),
    ...(description !== undefined && { description }),
    ...(label !== undefined && { labels: label }),
    ...(schema !== undefined && {
      schema: readJsonObject<DeclaredTypes>('--schema', schema),
    }),
    ...(textFields !== undefined && {
      text: { fields: textFields, ...(textLanguage !== undefined && { language: textLanguage }) },
    }),
    ...(ttl !== undefined && { ttl_seconds: parseDuration('--ttl', ttl) / 1_000 }),
    ...(options.replicationFactor !== undefined && {
      replication_factor: options.replicationFactor,
    }),
  });
  printRecord(record, options);
}

async function updateCollection(id: string, options: UpdateOptions): Promise<void> {
  const { description, addVector: added = {}, addSparseVector: addedSparse = [] } = options;
  const { dropVector: dropped = [], dropSparseVector: droppedSparse = [] } = options;
  const both = [
    ...Object.keys(added).filter((name) => dropped.includes(name)),
    ...addedSparse.filter((name) => droppedSparse.includes(name)),
  ];
  if (both.length > 0) {
    throw usageError(
      `${both.join(', ')}: found in options that add and that drop; drop it first, and add it with a second command`,
    );
  }
  const vectors = { ...added, ...valuesByName(dropped, null) };
  const sparse = { ...valuesByName(addedSparse, {}), ...valuesByName(droppedSparse, null) };
  const change = {
    ...(description !== undefined && { description }),
    ...(options.embed !== undefined && { embed: options.embed }),
    ...(Object.keys(vectors).length > 0 && { vectors }),
    ...(Object.keys(sparse).length > 0 && { sparse_vectors: sparse }),
  };
  if (Object.keys(change).length === 0) {
    throw usageError('expected an option with a change; found none');
  }
  const { collections } = connect(options);
  const lost = [...dropped, ...droppedSparse];
  if (lost.length > 0 && !options.yes) {
    const record = await collections.get(id);
    const what = `Drop ${lost.join(', ')} from ${record.id} with ${vectorsText(record)}?`;
    await confirmById(record, what, { do: 'drop', done: 'dropped' });
  }
  printRecord(await collections.update(id, change), options);
}

function valuesByName<Value>(names: readonly string[], value: Value): Record<string, Value> {
  return Object.fromEntries(names.map((name) => [name, value]));
}

async function deleteCollection(
  id: string,
  options: ReplyOptions & { yes?: boolean },
): Promise<void> {
  const { collections } = connect(options);
  const record = await collections.get(id);
  if (!options.yes) {
    const what = `Delete collection ${record.id} with ${vectorsText(record)}?`;
    await confirmById(record, what, { do: 'delete', done: 'deleted' });
  }
  const reply = await collections.delete(id);
  if (options.json) return write(JSON.stringify(reply));
  write(`Deleted collection ${id} with ${vectorsText(reply)}.`);
}

/** Throws CliError unless the user types the id. */
async function confirmById(
  { id }: CollectionRecord,
  question: string,
  verb: { readonly do: string; readonly done: string },
): Promise<void> {
  if (!isInteractive()) {
    throw usageError(`stdin is not a terminal: pass --yes to ${verb.do} without confirmation`);
  }
  const answer = await ask(`${question} Type the id to confirm: `);
  if (answer !== id) {
    throw usageError(`expected "${id}", found "${printable(answer)}"; nothing was ${verb.done}`);
  }
}

function vectorsText({ vector_count: count }: Pick<CollectionRecord, 'vector_count'>): string {
  return pluralize(count, 'vector');
}

function printRecord(record: CollectionRecord, options: ReplyOptions): void {
  print(record, options, () => {
    const entries = Object.entries(record);
    const width = Math.max(...entries.map(([name]) => name.length));
    return entries
      .map(([name, value]) => {
        const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
        return `${name.padEnd(width)}  ${printable(text)}`;
      })
      .join('\n');
  });
}

function addLabel(text: string, labels: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf('=');
  if (at < 1) throw usageError(`--label: expected name=value, found "${text}"`);
  return { ...labels, [text.slice(0, at)]: text.slice(at + 1) };
}

function addVector(
  text: string,
  vectors: Readonly<Record<string, NamedVectorInput>> = {},
): Record<string, NamedVectorInput> {
  const [, name, dimension, metric, multi] = VECTOR_TO_ADD.exec(text) ?? [];
  if (name === undefined) {
    throw usageError(
      `--add-vector: expected name:dimension[:metric[:multi]] such as summary:384:cosine, with a metric of ${METRICS.join(', ')}; found "${text}"`,
    );
  }
  const shape = {
    dimension: Number(dimension),
    ...(metric !== undefined && { metric: metric as Metric }),
    ...(multi !== undefined && { multi: true }),
  };
  return { ...vectors, [name]: shape };
}

const VECTOR_TO_ADD = new RegExp(`^([^:]+):(\\d{1,9})(?::(${METRICS.join('|')})(?::(multi))?)?$`);
