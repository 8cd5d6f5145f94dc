// Maps client certificates to principals by a table in a file, which is reloaded when it changes. A
// certificate is accepted if a configured authority has signed it, it is valid at the time of the
// request, and the table contains it.

import type { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { z } from 'zod';
import { type Principal, parseGrant, SCOPES } from '../../common/access.js';
import type { Clock } from '../../common/clock.js';
import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import { describeFileError } from '../transport/tls.js';
import { reloadOnChange } from '../transport/watched-files.js';
import type { CertificateTable } from './authenticator.js';
import {
  alternativeNamesOf,
  NAME_KINDS,
  readAlternativeName,
  readSubject,
  subjectOf,
} from './certificate-names.js';

const GRANTS = z
  .string()
  .refine(
    (text) => parseGrant(text) !== null,
    `expected one of ${SCOPES.join(', ')}, optionally with a pattern of collections`,
  );

const ENTRIES = z
  .array(
    z
      .strictObject({
        subject: z
          .string()
          .refine((text) => readSubject(text) !== null, 'expected a name such as "CN=batch,O=Acme"')
          .optional(),
        san: z
          .string()
          .refine(
            (text) => readAlternativeName(text) !== null,
            `expected one of ${NAME_KINDS.join(', ')}, a colon and the name, such as "dns:batch.internal"`,
          )
          .optional(),
        principal: z
          .string()
          .regex(/^[\w.@:/+-]{1,128}$/, 'expected 1 to 128 letters, digits and ._@:/+-'),
        scopes: z.array(GRANTS),
      })
      .refine(
        ({ subject, san }) => (subject === undefined) !== (san === undefined),
        'expected either a subject or a san',
      ),
  )
  // The table is kept in memory; access tokens serve larger numbers of clients.
  .max(10_000);

interface Table {
  /** By normalized name, `subject:…`, `dns:…` and so on. */
  readonly principals: ReadonlyMap<string, Principal>;
}

/** The result of looking up a connection, valid for one version of the table. */
interface Lookup {
  readonly table: Table;
  readonly certificate: X509Certificate;
  readonly principal: Principal | null;
}

interface OpenCertificateTable extends CertificateTable {
  close(): void;
}

/** Throws `configuration_invalid`, which names the file and the location in it. */
export async function openCertificateTable(options: {
  path: string;
  clock: Clock;
  logger: Logger;
}): Promise<OpenCertificateTable> {
  const { path, clock, logger } = options;
  let text = await readText(path);
  const certificates = new Certificates(parseTable(text, path), clock);
  const reload = async () => {
    const found = await readText(path);
    if (found === text) return;
    certificates.replaceTable(parseTable(found, path));
    text = found;
    logger.info({ path }, 'certificate table reloaded');
  };
  const watched = reloadOnChange([path], reload, {
    logger,
    failureMessage: 'certificate table not reloaded: the previous one stays in use',
  });
  return {
    principalOf: (socket) => certificates.principalOf(socket),
    close: () => watched.close(),
  };
}

class Certificates implements CertificateTable {
  readonly #clock: Clock;
  readonly #lookups = new WeakMap<Socket, Lookup>();
  #table: Table;

  constructor(table: Table, clock: Clock) {
    this.#table = table;
    this.#clock = clock;
  }

  /** Invalidates the cached lookups. */
  replaceTable(table: Table): void {
    this.#table = table;
  }

  principalOf(socket: Socket): Principal | null {
    if (!(socket instanceof TLSSocket)) return null;
    const known = this.#lookups.get(socket);
    const lookup = known?.table === this.#table ? known : this.#lookUp(socket);
    if (lookup === null) return null;
    const { certificate, principal } = lookup;
    const now = this.#clock.now();
    // A connection may outlive the certificate that it was opened with.
    if (now > Date.parse(certificate.validTo)) throw invalid('The client certificate has expired.');
    if (now < Date.parse(certificate.validFrom)) {
      throw invalid('The client certificate is not valid yet.');
    }
    if (principal === null) {
      throw invalid(
        `The client certificate of "${oneLine(certificate.subject)}" is not assigned to a principal.`,
      );
    }
    return principal;
  }

  #lookUp(socket: TLSSocket): Lookup | null {
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined) return null;
    if (!socket.authorized) {
      throw invalid(
        `The client certificate is not accepted: ${describeRefusal(socket.authorizationError)}.`,
      );
    }
    const names = [`subject:${subjectOf(certificate)}`, ...alternativeNamesOf(certificate)];
    const name = names.find((candidate) => this.#table.principals.has(candidate));
    const principal = name === undefined ? null : this.#table.principals.get(name)!;
    const lookup = { table: this.#table, certificate, principal };
    this.#lookups.set(socket, lookup);
    return lookup;
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw configurationError(
      `The certificate table ${path} cannot be read: ${describeFileError(error)}.`,
      error,
    );
  }
}

function parseTable(text: string, path: string): Table {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw configurationError(
      `The certificate table ${path} is not valid JSON: ${(error as Error).message}.`,
      error,
    );
  }
  const result = ENTRIES.safeParse(found);
  if (!result.success) {
    const issue = result.error.issues[0]!;
    throw configurationError(
      `The certificate table ${path} is not valid at /${issue.path.join('/')}: ${issue.message}.`,
    );
  }
  const principals = new Map<string, Principal>();
  for (const [index, { subject, san, principal, scopes }] of result.data.entries()) {
    const name =
      subject === undefined ? readAlternativeName(san!)! : `subject:${readSubject(subject)!}`;
    if (principals.has(name)) {
      throw configurationError(
        `The certificate table ${path} is not valid at /${index}: the name "${subject ?? san}" occurs twice.`,
      );
    }
    principals.set(name, {
      id: `certificate:${principal}`,
      grants: scopes.flatMap((scope) => parseGrant(scope) ?? []),
    });
  }
  return { principals };
}

/** Why OpenSSL rejected the certificate, as far as it helps the client. */
function describeRefusal(found: Error | string | null): string {
  const code = found instanceof Error ? found.message : String(found);
  const reasons: Readonly<Record<string, string>> = {
    CERT_HAS_EXPIRED: 'it has expired',
    CERT_NOT_YET_VALID: 'it is not valid yet',
    INVALID_PURPOSE: 'it is not a client certificate',
  };
  return reasons[code] ?? 'it is not signed by a trusted authority';
}

function oneLine(subject: string): string {
  return subject.replaceAll('\n', ',');
}

const invalid = (detail: string) => new SagittaError('credentials_invalid', detail);
const configurationError = (detail: string, cause?: unknown) =>
  new SagittaError('configuration_invalid', detail, { cause });
