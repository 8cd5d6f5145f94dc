// A query as a program that runs as it is pasted. A credential is never in it: where the server needs
// one, the program reads it from an environment variable.

import type { QueryRequest } from '@sagitta/client';
import { isJsonNumber, numberText } from '../../../../../src/common/exact-json.js';
import type { Json } from '../../../../../src/common/types.js';

export interface CopiedQuery {
  /** The root of the server, without a slash at its end. */
  readonly baseUrl: string;
  readonly collectionId: string;
  readonly request: QueryRequest;
  /** Whether the server asks for a credential. */
  readonly needsCredential: boolean;
}

/** The variable that the programs read the credential from. */
export const CREDENTIAL_VARIABLE = 'SAGITTA_API_KEY';

export const LANGUAGES = {
  curl: { label: 'curl', write: writeCurl },
  typescript: { label: 'TypeScript', write: writeTypeScript },
  python: { label: 'Python', write: writePython },
} as const;

export type Language = keyof typeof LANGUAGES;

function writeCurl({ baseUrl, collectionId, request, needsCredential }: CopiedQuery): string {
  const lines = [
    `curl -sS ${shellQuote(queryUrl(baseUrl, collectionId))} \\`,
    `  -H 'content-type: application/json' \\`,
    ...(needsCredential ? [`  -H "authorization: Bearer $${CREDENTIAL_VARIABLE}" \\`] : []),
    // A vector of thousands of numbers is too long for an argument.
    `  --data-binary @- <<'JSON'`,
    writeObject(request as unknown as Json, 0, JSON_WORDS),
    'JSON',
  ];
  return `${lines.join('\n')}\n`;
}

function writeTypeScript({ baseUrl, collectionId, request, needsCredential }: CopiedQuery): string {
  const body = writeObject(request as unknown as Json, 0, TYPESCRIPT_WORDS);
  const options = needsCredential
    ? `{\n  baseUrl: ${JSON.stringify(baseUrl)},\n  apiKey: env.${CREDENTIAL_VARIABLE} ?? '',\n}`
    : `{ baseUrl: ${JSON.stringify(baseUrl)} }`;
  const environment = needsCredential ? "import { env } from 'node:process';\n" : '';
  return `${environment}import { createClient } from '@sagitta/client';

const client = createClient(${options});
const { matches } = await client.collection(${JSON.stringify(collectionId)}).query(${
    // As a name in a literal it would set the prototype.
    body.replaceAll('"__proto__":', '["__proto__"]:')
  });
for (const { id, score } of matches) console.log(score.toFixed(6), id);
`;
}

function writePython({ baseUrl, collectionId, request, needsCredential }: CopiedQuery): string {
  const options = needsCredential ? `, api_key=os.environ["${CREDENTIAL_VARIABLE}"]` : '';
  return `${needsCredential ? 'import os\n\n' : ''}from sagitta import Sagitta

with Sagitta(${JSON.stringify(baseUrl)}${options}) as client:
    reply = client.collection(${JSON.stringify(collectionId)}).query(
        **${writeObject(request as unknown as Json, 2, PYTHON_WORDS)}
    )
for match in reply["matches"]:
    print(f"{match['score']:.6f}", match["id"])
`;
}

function queryUrl(baseUrl: string, collectionId: string): string {
  return `${baseUrl}/collections/${encodeURIComponent(collectionId)}/query`;
}

function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** How a language writes what JSON writes as true, false and null. */
interface Words {
  readonly indent: string;
  /** After the digits of an integer that float64 does not have. */
  readonly longSuffix: string;
  readonly true: string;
  readonly false: string;
  readonly null: string;
}

const JSON_WORDS: Words = {
  indent: '  ',
  longSuffix: '',
  true: 'true',
  false: 'false',
  null: 'null',
};
const TYPESCRIPT_WORDS: Words = { ...JSON_WORDS, longSuffix: 'n' };
const PYTHON_WORDS: Words = {
  indent: '    ',
  longSuffix: '',
  true: 'True',
  false: 'False',
  null: 'None',
};

/** An object with a line for each of its members. */
function writeObject(value: Json, depth: number, words: Words): string {
  const inner = words.indent.repeat(depth + 1);
  const members = Object.entries(value as object).map(
    ([name, member]) => `${inner}${JSON.stringify(name)}: ${writeInline(member as Json, words)}`,
  );
  return `{\n${members.join(',\n')}\n${words.indent.repeat(depth)}}`;
}

function writeInline(value: Json, words: Words): string {
  if (value === null) return words.null;
  if (typeof value === 'boolean') return value ? words.true : words.false;
  if (Array.isArray(value)) return `[${value.map((one) => writeInline(one, words)).join(', ')}]`;
  if (typeof value === 'bigint') return `${value}${words.longSuffix}`;
  if (isJsonNumber(value)) return numberText(value);
  if (typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}: ${writeInline(member, words)}`,
  );
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}
