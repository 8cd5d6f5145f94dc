// Normalizes the names in a certificate, so that two spellings of a name compare equal and no
// character in a name can make it look like two. Parses the text forms of OpenSSL, with their quotes
// and escapes.

import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';

export const NAME_KINDS = ['dns', 'uri', 'email', 'ip'] as const;
type NameKind = (typeof NAME_KINDS)[number];

const KIND_OF_LABEL: Readonly<Record<string, NameKind>> = {
  DNS: 'dns',
  URI: 'uri',
  email: 'email',
  'IP Address': 'ip',
};

/**
 * `Label:value`, where the value is a JSON string if it contains special characters: Node quotes it
 * since a comma in a name used to be taken for its end (CVE-2021-44532).
 */
const ALTERNATIVE_NAME = /([A-Za-z][\w ]*):("(?:[^"\\]|\\.)*"|[^",]*)(?:, |$)/y;

/** `dns:batch.internal`, `uri:spiffe://…`; none if a part of the text cannot be parsed. */
export function alternativeNamesOf({ subjectAltName }: X509Certificate): string[] {
  return subjectAltName === undefined ? [] : parseAlternativeNames(subjectAltName);
}

export function parseAlternativeNames(text: string): string[] {
  const names: string[] = [];
  const pattern = new RegExp(ALTERNATIVE_NAME);
  while (pattern.lastIndex < text.length) {
    const [, label, value] = pattern.exec(text) ?? [];
    if (label === undefined || value === undefined) return [];
    const kind = KIND_OF_LABEL[label];
    const plain = value.startsWith('"') ? parseQuoted(value) : value;
    if (plain === null) return [];
    if (kind !== undefined) names.push(writeAlternativeName(kind, plain));
  }
  return names;
}

function parseQuoted(value: string): string | null {
  try {
    return JSON.parse(value) as string;
  } catch {
    return null;
  }
}

/** Normalizes an alternative name from the configuration; null if it is invalid. */
export function readAlternativeName(text: string): string | null {
  const colon = text.indexOf(':');
  const kind = NAME_KINDS.find((name) => name === text.slice(0, colon));
  const value = text.slice(colon + 1);
  if (kind === undefined || value === '') return null;
  if (kind === 'ip' && isIP(value) === 0) return null;
  return writeAlternativeName(kind, value);
}

/** Host names and the hosts of mail addresses are case-insensitive. URIs are compared unchanged. */
function writeAlternativeName(kind: NameKind, value: string): string {
  if (kind === 'dns') return `dns:${value.toLowerCase()}`;
  if (kind === 'ip')
    return `ip:${isIP(value) === 6 ? new URL(`http://[${value}]`).hostname : value}`;
  if (kind === 'email') {
    const at = value.lastIndexOf('@') + 1;
    return `email:${value.slice(0, at)}${value.slice(at).toLowerCase()}`;
  }
  return `uri:${value}`;
}

/** An attribute, `CN=batch`, or several joined by `+`. */
type RelativeName = string;

/** The subject of a certificate, which Node returns with one escaped relative name per line. */
export function subjectOf({ subject }: X509Certificate): string {
  return writeSubject((subject ?? '').split('\n').map(readRelativeName));
}

/** Parses `CN=batch,O=Acme` as in RFC 4514; null if it is not a valid name. */
export function readSubject(text: string): string | null {
  const parts = splitUnescaped(text, ',').map(readRelativeName);
  return parts.includes(null) ? null : writeSubject(parts);
}

/** Programs write the relative names in either order. The smaller of both texts represents the name. */
function writeSubject(parts: readonly (RelativeName | null)[]): string {
  const forward = JSON.stringify(parts);
  const backward = JSON.stringify([...parts].reverse());
  return forward < backward ? forward : backward;
}

function readRelativeName(text: string): RelativeName | null {
  const attributes = splitUnescaped(text, '+').map((attribute) => {
    const equals = attribute.indexOf('=');
    const type = attribute.slice(0, Math.max(0, equals)).trim();
    if (!/^[A-Za-z][\w-]*$|^\d+(\.\d+)*$/.test(type)) return null;
    return [type.toUpperCase(), unescapeValue(attribute.slice(equals + 1))];
  });
  if (attributes.includes(null)) return null;
  return JSON.stringify(attributes.map((attribute) => JSON.stringify(attribute)).sort());
}

function splitUnescaped(text: string, separator: ',' | '+'): string[] {
  const parts = [''];
  for (let index = 0; index < text.length; index++) {
    const character = text[index]!;
    if (character === separator) parts.push('');
    else if (character === '\\') parts[parts.length - 1] += character + (text[++index] ?? '');
    else parts[parts.length - 1] += character;
  }
  return parts;
}

/** Removes blanks around a value unless they are escaped. */
function unescapeValue(value: string): string {
  const pattern = /\\([0-9A-Fa-f]{2})|\\([\s\S])|( +)|([^\\ ]+)/g;
  const tokens = [...value.matchAll(pattern)];
  while (tokens[0]?.[3] !== undefined) tokens.shift();
  while (tokens.at(-1)?.[3] !== undefined) tokens.pop();
  const bytes = tokens.map(([, hex, escaped, blanks, plain]) =>
    hex === undefined ? Buffer.from(escaped ?? blanks ?? plain ?? '') : Buffer.from(hex, 'hex'),
  );
  return Buffer.concat(bytes).toString('utf8');
}
