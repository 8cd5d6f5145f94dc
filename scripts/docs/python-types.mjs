// Generates python/src/sagitta/wire.py, the Python package's types of requests and replies, from the
// schemas in openapi.json: objects become TypedDicts, everything else becomes a type alias.
// scripts/docs/client-types.mjs imports this file, so that both clients change with the schemas.

import { readFileSync } from 'node:fs';
import { writeGenerated } from './generated.mjs';

const TARGET = 'python/src/sagitta/wire.py';
/** Line width, as in python/pyproject.toml. */
const COLUMNS = 100;
/** Python keywords, which cannot name members of a class. */
const KEYWORDS =
  /^(?:False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield)$/;

/** Schemas whose types are written by hand, with the type to use. */
const KNOWN = {
  Values: 'Values',
  Metadata: 'JsonObject',
  Filter: 'JsonObject',
  Numbers: 'Values',
  IncludeValues: 'IncludeValues',
};
/** Members for which the client accepts more types than the server. */
const MEMBERS = {
  include_values: 'IncludeValues',
};

const HEADER = `"""What crosses the wire, in the names of the wire: TypedDicts of requests and replies.

Generated from the schemas of the server by \`npm run openapi\`; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from typing_extensions import NotRequired, TypedDict

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object. NumPy's scalars and arrays in it become numbers and lists."""
Values: TypeAlias = "Sequence[float] | NDArray[numpy.number[Any]] | str"
"""A vector of [dimension] float32: numbers, an array, or base64 of little-endian float32."""
IncludeValues: TypeAlias = "bool | Literal['base64', 'numpy']"
"""How vectors are returned: not, as numbers, as base64 (queries only) or as float32 arrays."""
`;

const { schemas } = JSON.parse(
  readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'),
).components;

const parts = [];
const written = new Set(Object.keys(KNOWN));
for (const name of Object.keys(schemas)) writeSchema(name);
writeGenerated(TARGET, [HEADER, ...parts].join('\n\n').replaceAll(/^.*$/gm, breakLong));

/** Writes a schema after the schemas it refers to, because an alias needs them to exist. */
function writeSchema(name) {
  if (written.has(name)) return;
  written.add(name);
  const schema = schemas[name];
  for (const other of referencesOf(schema)) writeSchema(other);
  parts.push(schema.properties === undefined ? writeAlias(name, schema) : writeDict(name, schema));
}

function writeAlias(name, schema) {
  const description = docstring(schema, '');
  return `${name}: TypeAlias = ${quoteUnion(writeValue(`${name}Value`, schema))}\n${description}`;
}

function writeDict(name, { properties, required = [], ...schema }) {
  const members = Object.entries(properties).map(([member, described]) => {
    const type = MEMBERS[member] ?? writeValue(name + pascal(member), described);
    const annotation = required.includes(member) ? type : `NotRequired[${type}]`;
    return { member, annotation, described };
  });
  if (members.some(({ member }) => KEYWORDS.test(member))) {
    const lines = members.map(
      ({ member, annotation, described }) =>
        `${comment(described)}        "${member}": ${quoteUnion(annotation)},\n`,
    );
    return `${name} = TypedDict(\n    "${name}",\n    {\n${lines.join('')}    },\n)\n${docstring(schema, '')}`;
  }
  const lines = members.map(
    ({ member, annotation, described }) =>
      `    ${member}: ${annotation}\n${docstring(described, '    ')}`,
  );
  const body = docstring(schema, '    ') + lines.join('');
  return `class ${name}(TypedDict):\n${body === '' ? '    pass\n' : body}`;
}

/** Returns the type of a schema. An object with members becomes a type called `name`, which is written first. */
function writeValue(name, schema) {
  if (schema.$ref !== undefined) {
    const target = schemaName(schema);
    return KNOWN[target] ?? target;
  }
  if (schema.const !== undefined) return literal([schema.const]);
  if (schema.enum !== undefined) return literal(schema.enum);
  const choices =
    schema.anyOf ??
    schema.oneOf ??
    (Array.isArray(schema.type) ? schema.type.map((type) => ({ ...schema, type })) : undefined);
  if (choices !== undefined)
    return union(
      choices.map((choice, at) => writeValue(at === 0 ? name : `${name}${at + 1}`, choice)),
    );
  switch (schema.type) {
    case 'integer':
      return 'int';
    case 'number':
      return 'float';
    case 'string':
      return 'str';
    case 'boolean':
      return 'bool';
    case 'null':
      return 'None';
    case 'array':
      return `Sequence[${writeValue(`${name}Item`, schema.items)}]`;
    case 'object':
      return writeObject(name, schema);
    default:
      return 'Any';
  }
}

function writeObject(name, schema) {
  if (schema.properties !== undefined && Object.keys(schema.properties).length > 0) {
    if (!written.has(name)) parts.push(writeDict(name, schema));
    written.add(name);
    return name;
  }
  const { additionalProperties: values } = schema;
  const type = typeof values === 'object' ? writeValue(`${name}Item`, values) : 'Any';
  return `Mapping[str, ${type}]`;
}

function literal(values) {
  const words = { true: 'True', false: 'False', null: 'None' };
  return `Literal[${values.map((value) => words[value] ?? JSON.stringify(value)).join(', ')}]`;
}

/** Quotes a union: some of its types are strings themselves at run time, and strings have no operator `|`. */
function quoteUnion(type) {
  return type.includes(' | ') ? `'${type}'` : type;
}

function union(types) {
  const distinct = [...new Set(types)];
  return distinct.length === 1 ? distinct[0] : distinct.join(' | ');
}

function referencesOf(schema) {
  if (typeof schema !== 'object' || schema === null) return [];
  if (schema.$ref !== undefined) return [schemaName(schema)];
  return Object.values(schema).flatMap(referencesOf);
}

function schemaName({ $ref }) {
  return $ref.split('/').at(-1);
}

function pascal(name) {
  return name.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter) => letter.toUpperCase());
}

/** Breaks a line that a list of literals makes too long, with one literal per line. */
function breakLong(line) {
  const [, start, literals, end] = /^(.*Literal\[)([^\]]*[^[\]])(\].*)$/.exec(line) ?? [];
  if (line.length <= COLUMNS || literals === undefined) return line;
  const indent = /^ */.exec(line)[0];
  return `${start}\n${literals.replaceAll(/(^|, )/g, (_, comma) => `${comma && ',\n'}${indent}    `)},\n${indent}${end}`;
}

/** Formats the first paragraph of a description as a docstring. */
function docstring({ description }, indent) {
  if (description === undefined) return '';
  const [first, ...rest] = wrap(description, COLUMNS - indent.length - 3);
  if (rest.length === 0 && indent.length + first.length + 6 <= COLUMNS) {
    return `${indent}"""${first}"""\n`;
  }
  // After several lines, the closing quotes go on a line of their own.
  return `${[`${indent}"""${first}`, ...rest.map((line) => indent + line), `${indent}"""`].join('\n')}\n`;
}

/** Formats the first paragraph of a description as a comment inside a call. */
function comment({ description }) {
  if (description === undefined) return '';
  return wrap(description, COLUMNS - 10)
    .map((line) => `        # ${line}\n`)
    .join('');
}

function wrap(description, columns) {
  const lines = [''];
  for (const word of description.split('\n')[0].replaceAll('\\', '\\\\').split(' ')) {
    const line = lines.at(-1) === '' ? word : `${lines.at(-1)} ${word}`;
    if (line.length > columns) lines.push(word);
    else lines[lines.length - 1] = line;
  }
  return lines;
}
