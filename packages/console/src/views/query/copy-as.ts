// Writes a query as a program that can be pasted and run. It never contains a credential: if the server requires
// one, the program reads it from an environment variable.

import type { QueryRequest } from '@sagitta/client';
import { isJsonNumber, numberText } from '../../../../../src/common/exact-json.js';
import type { Json } from '../../../../../src/common/types.js';

export interface CopiedQuery {
  /** The root of the server, without a trailing slash. */
  readonly baseUrl: string;
  readonly collectionId: string;
  readonly request: QueryRequest;
  /** Whether the server requires a credential. */
  readonly needsCredential: boolean;
}

/** The environment variable from which the programs read the credential. */
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
    writeObject(request as unknown as Json, 0, JSON_SYNTAX),
    'JSON',
  ];
  return `${lines.join('\n')}\n`;
}

function writeTypeScript({ baseUrl, collectionId, request, needsCredential }: CopiedQuery): string {
  const body = writeObject(request as unknown as Json, 0, TYPESCRIPT_SYNTAX);
  const options = needsCredential
    ? `{\n  baseUrl: ${JSON.stringify(baseUrl)},\n  apiKey: env.${CREDENTIAL_VARIABLE} ?? '',\n}`
    : `{ baseUrl: ${JSON.stringify(baseUrl)} }`;
  const environment = needsCredential ? "import { env } from 'node:process';\n" : '';
  return `${environment}import { createClient } from '@sagitta/client';

const client = createClient(${options});
const { matches } = await client.collection(${JSON.stringify(collectionId)}).query(${
    // Without brackets, this name would set the prototype.
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
        **${writeObject(request as unknown as Json, 2, PYTHON_SYNTAX)}
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

/** The syntax of literals in a language. */
interface LiteralSyntax {
  readonly indent: string;
  /** The suffix of integers that float64 cannot represent. */
  readonly longSuffix: string;
  readonly true: string;
  readonly false: string;
  readonly null: string;
}

const JSON_SYNTAX: LiteralSyntax = {
  indent: '  ',
  longSuffix: '',
  true: 'true',
  false: 'false',
  null: 'null',
};
const TYPESCRIPT_SYNTAX: LiteralSyntax = { ...JSON_SYNTAX, longSuffix: 'n' };
const PYTHON_SYNTAX: LiteralSyntax = {
  indent: '    ',
  longSuffix: '',
  true: 'True',
  false: 'False',
  null: 'None',
};

/** An object with one member per line. */
function writeObject(value: Json, depth: number, syntax: LiteralSyntax): string {
  const inner = syntax.indent.repeat(depth + 1);
  const members = Object.entries(value as object).map(
    ([name, member]) => `${inner}${JSON.stringify(name)}: ${writeInline(member as Json, syntax)}`,
  );
  return `{\n${members.join(',\n')}\n${syntax.indent.repeat(depth)}}`;
}

function writeInline(value: Json, syntax: LiteralSyntax): string {
  if (value === null) return syntax.null;
  if (typeof value === 'boolean') return value ? syntax.true : syntax.false;
  if (Array.isArray(value)) return `[${value.map((one) => writeInline(one, syntax)).join(', ')}]`;
  if (typeof value === 'bigint') return `${value}${syntax.longSuffix}`;
  if (isJsonNumber(value)) return numberText(value);
  if (typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}: ${writeInline(member, syntax)}`,
  );
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}
