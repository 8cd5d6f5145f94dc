// Writes a query as a program that can be pasted and run. It never contains a credential: if the server requires
// one, the program reads it from an environment variable.

import type { QueryRequest } from '@sagitta/client';
import type { Json } from '../../../../../src/common/types.js';
import { formatJson, JSON_SYNTAX, type LiteralSyntax } from './json-text.js';

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
    formatJson(request as unknown as Json),
    'JSON',
  ];
  return `${lines.join('\n')}\n`;
}

function writeTypeScript({ baseUrl, collectionId, request, needsCredential }: CopiedQuery): string {
  const body = formatJson(request as unknown as Json, TYPESCRIPT_SYNTAX);
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
        **${formatJson(request as unknown as Json, PYTHON_SYNTAX, 2)}
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

const TYPESCRIPT_SYNTAX: LiteralSyntax = { ...JSON_SYNTAX, longSuffix: 'n' };
const PYTHON_SYNTAX: LiteralSyntax = {
  indent: '    ',
  longSuffix: '',
  true: 'True',
  false: 'False',
  null: 'None',
};
