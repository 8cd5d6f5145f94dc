// Generates the tables of methods in docs/client.md from the interfaces in packages/client/src. Relies on biome's
// format: a member begins with two spaces and ends with a semicolon.
//
//   node scripts/docs/client-methods.mjs            writes the tables
//   node scripts/docs/client-methods.mjs --check    fails if the tables are out of date

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { writeGenerated } from './generated.mjs';

const TARGET = 'docs/client.md';
const BEGIN = '<!-- methods: written by scripts/docs/client-methods.mjs -->\n';
const END = '<!-- end of methods -->';

/** The expressions that methods are called on, and the files and interfaces that declare the methods. */
const OBJECTS = {
  client: [
    ['client', 'Client'],
    ['service', 'ServiceMethods'],
  ],
  'client.collections': [['service', 'Collections']],
  'client.collection(id)': [
    ['vectors', 'Vectors'],
    ['shared-routes', 'SharedRoutes'],
    ['streams', 'Streams'],
    ['projection', 'Projections'],
  ],
  'client.defaultCollection': [['shared-routes', 'SharedRoutes']],
  'client.aliases': [['service', 'Aliases']],
  'client.keys': [['service', 'Keys']],
  'client.backups': [['service', 'Backups']],
  'client.audit': [['service', 'Audit']],
  'client.service': [['service', 'Service']],
};

/** Type parameters, left out because they would only widen the tables. */
const PARAMETERS = /<(?:(?:ValuesOf<Asked>|Asked|Metadata|readonly number\[\])(?:, )?)+>/g;
const COMMENT = /\/\*\*\s*([\s\S]*?)\s*\*\//g;

const root = fileURLToPath(new URL('../..', import.meta.url));
const tables = [
  ...Object.entries(OBJECTS).map(([name, interfaces]) =>
    writeTable(`\`${name}\``, interfaces.flatMap(methodsOf)),
  ),
  writeTable('Functions of `@sagitta/client/arrow`', functionsOf('arrow')),
];
const document = readFileSync(`${root}/${TARGET}`, 'utf8');
const [before, rest] = split(document, BEGIN);
const [, after] = split(rest, END);
writeGenerated(TARGET, `${before}${BEGIN}\n${tables.join('\n')}\n${END}${after}`);

function split(text, mark) {
  const at = text.indexOf(mark);
  if (at === -1) throw new Error(`Expected the line ${mark.trim()} in ${TARGET}; found none`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}

function writeTable(heading, methods) {
  const rows = methods.map(
    ({ signature, result, comment }) => `| ${code(signature)} | ${code(result)} | ${comment} |`,
  );
  return [`### ${heading}\n`, '| method | result | |', '| --- | --- | --- |', ...rows, ''].join(
    '\n',
  );
}

/** Formats a cell as code. A bar ends the cell even within code, so it is escaped. */
function code(text) {
  return `\`${text.replaceAll('|', '\\|')}\``;
}

function methodsOf([file, name]) {
  const text = readSource(file);
  const start = text.search(new RegExp(`^export interface ${name}\\b`, 'm'));
  if (start === -1)
    throw new Error(`Expected the interface ${name} in packages/client/src/${file}.ts; found none`);
  const heading = text.indexOf(' {\n', start);
  const body = text.slice(heading + 3, text.indexOf('\n}\n', heading));
  const methods = readDeclarations(body, /^ {2}(\w+)(?=[<(])/gm, ';\n');
  if (methods.length === 0)
    throw new Error(`Expected methods of ${name} in packages/client/src/${file}.ts; found none`);
  return methods;
}

function functionsOf(file) {
  const declared = /^export (?:async )?function\*? (\w+)(?=[<(])/gm;
  return readDeclarations(readSource(file), declared, ' {\n');
}

/** Reads the methods or functions whose names match `pattern`. `end` is the text after the type of the result. */
function readDeclarations(text, pattern, end) {
  return [...`${text}\n`.matchAll(pattern)].map((found) => {
    const rest = `${text}\n`.slice(found.index + found[0].length);
    const open = rest.indexOf('(');
    const close = closingParenthesis(rest, open);
    const parameters = tidy(rest.slice(open + 1, close));
    const result = rest.slice(close + 1);
    return {
      signature: `${found[1]}(${withoutOptions(parameters)})`,
      result: tidy(result.slice(result.indexOf(':') + 1, result.indexOf(end))),
      comment: firstSentence(text.slice(0, found.index)),
    };
  });
}

function closingParenthesis(text, open) {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === '(') depth++;
    if (text[at] === ')' && --depth === 0) return at;
  }
  throw new Error(`Expected a closing parenthesis; found none in ${text.slice(0, 100)}`);
}

/** Puts types on one line, without comments and type parameters. */
function tidy(types) {
  return types
    .replace(COMMENT, '')
    .replace(/\s+/g, ' ')
    .replace(PARAMETERS, '')
    .replace(/,\s*$/, '')
    .trim();
}

/** Removes the options, which every method takes as its last parameter. */
function withoutOptions(parameters) {
  return parameters.replace(/,? ?options(\?: CallOptions|: CallOptions = \{\})$/, '').trim();
}

/** The first sentence of the comment that ends the text. */
function firstSentence(text) {
  const comment = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*$/.exec(text)?.[1] ?? '';
  const words = comment
    .replace(/^\s*\* ?/gm, '')
    .replace(/\s+/g, ' ')
    .trim();
  return (/^.*?[.](?= |$)/.exec(words)?.[0] ?? words).replaceAll('|', '\\|');
}

function readSource(file) {
  return readFileSync(`${root}/packages/client/src/${file}.ts`, 'utf8');
}
