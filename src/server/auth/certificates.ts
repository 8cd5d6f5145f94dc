// Which certificate is which principal: a table in a file, read again when it changes. A
// certificate counts when it was signed by one of our authorities, is in time at every request, and
// is in the table.

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
import { watchFiles } from '../transport/watched-files.js';
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
    `expected one of ${SCOPES.join(', ')}, or one with a glob of collections`,
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
  // Kept in memory; whoever has more clients gives them tokens.
  .max(10_000);

interface Table {
  /** By `subject:…` and `dns:…`, in the one way to write each. */
  readonly principals: ReadonlyMap<string, Principal>;
}

/** What is known of a connection while the table stays the same. */
interface Finding {
  readonly table: Table;
  readonly certificate: X509Certificate;
  readonly principal: Principal | null;
}

export class Certificates implements CertificateTable {
  readonly #clock: Clock;
  readonly #findings = new WeakMap<Socket, Finding>();
  #table: Table;
  #close: () => void = () => {};

  private constructor(table: Table, clock: Clock) {
    this.#table = table;
    this.#clock = clock;
  }

  /** Throws `configuration_invalid`, which names the file and the place in it. */
  static async open(options: {
    path: string;
    clock: Clock;
    logger: Logger;
  }): Promise<Certificates> {
    const { path, clock, logger } = options;
    let text = await readText(path);
    const made = new Certificates(parseTable(text, path), clock);
    let reading: Promise<void> = Promise.resolve();
    const reload = async () => {
      const found = await readText(path);
      if (found === text) return;
      // From here on every connection is looked up again.
      made.#table = parseTable(found, path);
      text = found;
      logger.info({ path }, 'table of certificates reloaded');
    };
    const watched = watchFiles(
      [path],
      () => {
        reading = reading.then(reload).catch((error: unknown) => {
          logger.error(
            { detail: error instanceof Error ? error.message : String(error) },
            'table of certificates not reloaded: the one before stays in force',
          );
        });
      },
      logger,
    );
    made.#close = () => watched.close();
    return made;
  }

  principalOf(socket: Socket): Principal | null {
    if (!(socket instanceof TLSSocket)) return null;
    const known = this.#findings.get(socket);
    const finding = known?.table === this.#table ? known : this.#find(socket);
    if (finding === null) return null;
    const { certificate, principal } = finding;
    const now = this.#clock.now();
    // Connections may outlive the certificate that opened them.
    if (now > Date.parse(certificate.validTo)) throw invalid('The client certificate has expired.');
    if (now < Date.parse(certificate.validFrom)) {
      throw invalid('The client certificate is not valid yet.');
    }
    if (principal === null) {
      throw invalid(
        `The client certificate of "${oneLine(certificate.subject)}" is not in the table of principals.`,
      );
    }
    return principal;
  }

  close(): void {
    this.#close();
  }

  #find(socket: TLSSocket): Finding | null {
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
    const finding = { table: this.#table, certificate, principal };
    this.#findings.set(socket, finding);
    return finding;
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw refuse(
      `The table of certificates ${path} cannot be read: ${describeFileError(error)}.`,
      error,
    );
  }
}

export function parseTable(text: string, path: string): Table {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw refuse(
      `The table of certificates ${path} is not JSON: ${(error as Error).message}.`,
      error,
    );
  }
  const result = ENTRIES.safeParse(found);
  if (!result.success) {
    const issue = result.error.issues[0]!;
    throw refuse(
      `The table of certificates ${path} is not valid at /${issue.path.join('/')}: ${issue.message}.`,
    );
  }
  const principals = new Map<string, Principal>();
  for (const [index, { subject, san, principal, scopes }] of result.data.entries()) {
    const name =
      subject === undefined ? readAlternativeName(san!)! : `subject:${readSubject(subject)!}`;
    if (principals.has(name)) {
      throw refuse(
        `The table of certificates ${path} is not valid at /${index}: expected every name once; found "${subject ?? san}" again.`,
      );
    }
    principals.set(name, {
      id: `certificate:${principal}`,
      grants: scopes.flatMap((scope) => parseGrant(scope) ?? []),
    });
  }
  return { principals };
}

/** Why OpenSSL did not believe it, where that helps whoever shows it. */
function describeRefusal(found: Error | string | null): string {
  const code = found instanceof Error ? found.message : String(found);
  const reasons: Readonly<Record<string, string>> = {
    CERT_HAS_EXPIRED: 'it has expired',
    CERT_NOT_YET_VALID: 'it is not valid yet',
    INVALID_PURPOSE: 'it is not meant for clients',
  };
  return reasons[code] ?? 'none of the authorities of this service has signed it';
}

function oneLine(subject: string): string {
  return subject.replaceAll('\n', ',');
}

const invalid = (detail: string) => new SagittaError('credentials_invalid', detail);
const refuse = (detail: string, cause?: unknown) =>
  new SagittaError('configuration_invalid', detail, { cause });
