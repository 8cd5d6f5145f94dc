// Generates packages/client/src/wire.ts, the client's types of requests and replies, from the schemas in
// openapi.json. Also runs python-types.mjs, which generates those of the Python package. Run
// `node scripts/docs/openapi.mjs` first.
//
//   node scripts/docs/client-types.mjs            writes the file
//   node scripts/docs/client-types.mjs --check    fails if the file is out of date

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { writeGenerated } from './generated.mjs';
import './python-types.mjs';

const TARGET = 'packages/client/src/wire.ts';

/**
 * The types to write: the client's name, the schema, and the members that the type omits because the client handles
 * them itself. A type that contains vectors, metadata or filters takes their types as parameters.
 */
const TYPES = {
  NamedVectorInput: { schema: 'NamedVectorInput' },
  NamedVectorSettings: { schema: 'NamedVectorSettings' },
  CollectionInput: { schema: 'CollectionCreate', omit: ['idempotency_key'] },
  EngineChoice: { schema: 'EngineChoice' },
  MemoryUse: { schema: 'MemoryUse' },
  CollectionRecord: { schema: 'Collection' },
  CollectionMoveUnderWay: { schema: 'CollectionMoveUnderWay' },
  CollectionPage: { schema: 'CollectionList' },
  SegmentRecord: { schema: 'Segment' },
  SegmentPage: { schema: 'SegmentList' },
  TextSettingsInput: { schema: 'TextSettingsInput' },
  TextSettings: { schema: 'TextSettings' },
  CollectionClone: { schema: 'CollectionClone', omit: ['idempotency_key'] },
  EmbeddingInput: { schema: 'Embedding' },
  AliasRecord: { schema: 'Alias' },
  AliasPage: { schema: 'AliasList' },
  VectorInput: { schema: 'VectorInput' },
  TextInput: { schema: 'TextInput' },
  RecordInput: { schema: 'RecordInput' },
  PatchInput: { schema: 'PatchInput' },
  SparseVector: { schema: 'SparseVector' },
  StoredVector: { schema: 'Vector' },
  VectorsWritten: { schema: 'VectorsWritten' },
  PutReply: { schema: 'VectorReplaced' },
  PatchReply: { schema: 'VectorPatched' },
  DeleteReply: { schema: 'VectorDeleted' },
  DeleteManyReply: { schema: 'VectorsDeleted' },
  UpdateManyReply: { schema: 'VectorsUpdated' },
  FetchReply: { schema: 'VectorsFetched' },
  VectorPage: { schema: 'VectorList' },
  SortKey: { schema: 'SortKey' },
  Query: { schema: 'Query' },
  TextQuery: { schema: 'TextQuery' },
  Recommend: { schema: 'Recommend' },
  ExamplePair: { schema: 'ExamplePair' },
  Discover: { schema: 'Discover' },
  Mmr: { schema: 'Mmr' },
  Fusion: { schema: 'Fusion' },
  FusionPart: { schema: 'FusionPart' },
  Prefetch: { schema: 'Prefetch' },
  Match: { schema: 'Match' },
  Explain: { schema: 'Explain' },
  QueryReply: { schema: 'QueryReply' },
  FacetRequest: { schema: 'FacetRequest' },
  StatsRequest: { schema: 'StatsRequest' },
  ScoreStatsRequest: { schema: 'ScoreStatsRequest' },
  AggregateRequest: { schema: 'Aggregate' },
  HistogramRequest: { schema: 'HistogramRequest' },
  AggregateReply: { schema: 'AggregateReply' },
  Warning: { schema: 'Warning' },
  ScoreStats: { schema: 'ScoreStats' },
  FoundSchema: { schema: 'FoundSchema' },
  FoundPath: { schema: 'FoundPath' },
  TypeCounts: { schema: 'TypeCounts' },
  FacetValue: { schema: 'FacetValue' },
  Facet: { schema: 'Facet' },
  HistogramBucket: { schema: 'HistogramBucket' },
  Histogram: { schema: 'Histogram' },
  Stats: { schema: 'Stats' },
  RecallReply: { schema: 'RecallReply' },
  ServiceInfo: { schema: 'ServiceInfo' },
  Traffic: { schema: 'Traffic' },
  TrafficInterval: { schema: 'TrafficInterval' },
  CollectionTraffic: { schema: 'CollectionTraffic' },
  SlowQuery: { schema: 'SlowQuery' },
  CollectionNotReady: { schema: 'CollectionNotReady' },
  Readiness: { schema: 'Readiness' },
  ServiceProblem: { schema: 'ServiceProblem' },
  LogServer: { schema: 'LogServer' },
  CollectionProblem: { schema: 'CollectionProblem' },
  ClusterNode: { schema: 'ClusterNode' },
  Cluster: { schema: 'Cluster' },
  ClusterDurability: { schema: 'ClusterDurability' },
  NodeDigest: { schema: 'NodeDigest' },
  CollectionDigest: { schema: 'CollectionDigest' },
  VerifiedFiles: { schema: 'VerifiedFiles' },
  ClusterFiles: { schema: 'ClusterFiles' },
  BackupRecord: { schema: 'Backup' },
  ApiKeyInput: { schema: 'ApiKeyCreate' },
  ApiKeyRateLimit: { schema: 'ApiKeyRateLimit' },
  ApiKeyRateLimitInput: { schema: 'ApiKeyRateLimitInput' },
  ApiKeyRecord: { schema: 'ApiKey' },
  ApiKeyWithSecret: { schema: 'ApiKeyWithSecret' },
  AuditEvent: { schema: 'AuditEvent' },
  AuditPage: { schema: 'AuditList' },
  Grant: { schema: 'Grant' },
  PrincipalRecord: { schema: 'Principal' },
  ProblemItem: { schema: 'ProblemIssue' },
  Problem: { schema: 'Problem' },
};

/** Schemas whose types are written by hand, with the type to use. */
const KNOWN = {
  VectorId: 'string',
  CollectionId: 'string',
  AliasName: 'string',
  ApiKeyId: 'string',
  VectorName: 'string',
  Numbers: 'Values',
  Values: 'Values',
  Example: 'string | readonly number[]',
  MultiVector: 'readonly Values[]',
  NamedValues: 'Readonly<Record<string, Values | readonly Values[]>>',
  SparseVectors: 'Readonly<Record<string, SparseVector>>',
  SparseVectorSettings: 'Readonly<Record<string, never>>',
  Metadata: 'Metadata',
  Filter: 'Filter',
  Labels: 'Readonly<Record<string, string>>',
  DeclaredSchema: 'DeclaredTypes',
  Metric: 'Metric',
  ErrorCode: 'ErrorCode',
  ProblemCode: 'ProblemCode',
  TextLanguage: 'TextLanguage',
};

/** Type parameters in order, with their defaults. */
const PARAMETERS = { Values: 'readonly number[]', Metadata: 'JsonObject', Filter: 'JsonObject' };

const root = fileURLToPath(new URL('../..', import.meta.url));
const { schemas } = JSON.parse(readFileSync(`${root}/openapi.json`, 'utf8')).components;
const nameOfSchema = Object.fromEntries(
  Object.entries(TYPES).map(([name, { schema }]) => [schema, name]),
);

const HEADER = `// What crosses the wire, in the names of the wire. Generated from the schemas of the server by
// \`npm run openapi\`; do not edit. types.ts has what the client adds.

import type { ErrorCode } from '../../../src/common/errors.js';
import type { ProblemCode } from '../../../src/common/problems.js';
import type { TextLanguage } from '../../../src/common/text-settings.js';
import type { DeclaredTypes, JsonObject, Metric } from '../../../src/common/types.js';
`;

const source = [HEADER, ...Object.entries(TYPES).map(writeType)].join('\n');
const biome = `${root}/node_modules/.bin/biome`;
const formatted = execFileSync(biome, ['format', `--stdin-file-path=${TARGET}`], {
  input: source,
  encoding: 'utf8',
  cwd: root,
});
writeGenerated(TARGET, formatted);

function writeType([name, { schema, omit = [] }]) {
  const described = schemas[schema];
  const parameters = parametersOf(described).map(
    (parameter) => `${parameter} = ${PARAMETERS[parameter]}`,
  );
  const heading = `export interface ${name}${inBrackets(parameters)}`;
  return `${comment(described)}${heading} ${writeObject(described, omit)}\n`;
}

function writeObject({ properties, required = [] }, omit = []) {
  const members = Object.entries(properties)
    .filter(([name]) => !omit.includes(name))
    .map(([name, schema]) => {
      const mark = required.includes(name) ? '' : '?';
      return `${comment(schema)}readonly ${name}${mark}: ${writeValue(schema)};`;
    });
  return `{\n${members.join('\n')}\n}`;
}

function writeValue(schema) {
  if (schema.$ref !== undefined) return writeReference(schemaName(schema));
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join('|');
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return choices.map(writeValue).join('|');
  if (Array.isArray(schema.type)) {
    return schema.type.map((type) => writeValue({ ...schema, type })).join('|');
  }
  switch (schema.type) {
    case 'integer':
    case 'number':
      return 'number';
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    case 'array':
      return `readonly (${writeValue(schema.items)})[]`;
    case 'object':
      if (schema.properties !== undefined) return writeObject(schema);
      return `Readonly<Record<string, ${writeValue(schema.additionalProperties)}>>`;
    default:
      throw new Error(`Expected a schema with a known type; found ${JSON.stringify(schema)}`);
  }
}

function writeReference(name) {
  if (name in KNOWN) return KNOWN[name];
  if (!(name in nameOfSchema)) {
    if (schemas[name].properties !== undefined)
      throw new Error(`Expected the schema ${name} in TYPES; found none`);
    return writeValue(schemas[name]);
  }
  return `${nameOfSchema[name]}${inBrackets(parametersOf(schemas[name]))}`;
}

/** The type parameters that the type of a schema takes. */
function parametersOf(schema) {
  const found = new Set(namesIn(schema));
  return Object.keys(PARAMETERS).filter((parameter) => found.has(parameter));
}

/** The names in the types written by hand that the schema refers to, directly or indirectly. */
function namesIn(schema) {
  if (schema.$ref === undefined) {
    return Object.values(schema).flatMap((part) =>
      typeof part === 'object' && part !== null ? namesIn(part) : [],
    );
  }
  const name = schemaName(schema);
  return name in KNOWN ? KNOWN[name].match(/\w+/g) : namesIn(schemas[name]);
}

function inBrackets(parameters) {
  return parameters.length === 0 ? '' : `<${parameters.join(', ')}>`;
}

function schemaName({ $ref }) {
  return $ref.split('/').at(-1);
}

/** Formats the first paragraph of a description as a comment of at most 100 columns. */
function comment({ description }) {
  if (description === undefined) return '';
  const lines = [''];
  for (const word of description.split('\n')[0].split(' ')) {
    const line = `${lines.at(-1)} ${word}`;
    if (line.length > 92) lines.push(` ${word}`);
    else lines[lines.length - 1] = line;
  }
  if (lines.length === 1) return `/**${lines[0]} */\n`;
  return `/**\n${lines.map((line) => ` *${line}`).join('\n')}\n */\n`;
}
