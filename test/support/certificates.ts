// Creates a certificate authority, and certificates signed by it.

import { webcrypto } from 'node:crypto';
import './reflect-metadata.js';
import * as x509 from '@peculiar/x509';

x509.cryptoProvider.set(webcrypto);

export interface CertificateFiles {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

export interface CertificateOptions {
  /** As in RFC 4514, `CN=batch,O=Acme`. */
  readonly subject: string;
  readonly san?: readonly { type: 'dns' | 'url' | 'email' | 'ip'; value: string }[];
  /** For both purposes if absent. */
  readonly purpose?: 'server' | 'client';
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

export interface Authority {
  readonly cert: string;
  issue(options: CertificateOptions): Promise<CertificateFiles>;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const HOUR_MS = 60 * 60 * 1000;

export async function createAuthority(name = 'CN=Test authority'): Promise<Authority> {
  const keys = await generateKeys();
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name,
    notBefore: new Date(Date.now() - HOUR_MS),
    notAfter: new Date(Date.now() + HOUR_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 2, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  });
  let serial = 1;
  return {
    cert: authority.toString('pem'),
    async issue({ subject, san = [], purpose, ...times }) {
      const own = await generateKeys();
      const uses = {
        server: [x509.ExtendedKeyUsage.serverAuth],
        client: [x509.ExtendedKeyUsage.clientAuth],
      };
      const certificate = await x509.X509CertificateGenerator.create({
        serialNumber: (++serial).toString(16).padStart(4, '0'),
        subject,
        issuer: authority.subject,
        notBefore: times.notBefore ?? new Date(Date.now() - HOUR_MS),
        notAfter: times.notAfter ?? new Date(Date.now() + HOUR_MS),
        signingAlgorithm: ALGORITHM,
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        extensions: [
          new x509.BasicConstraintsExtension(false),
          ...(san.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension([...san])]),
          ...(purpose === undefined ? [] : [new x509.ExtendedKeyUsageExtension(uses[purpose])]),
        ],
      });
      return { cert: certificate.toString('pem'), key: await exportKey(own.privateKey) };
    },
  };
}

/** Issues a certificate for servers on this machine. */
export function issueForServer(
  authority: Authority,
  options: Partial<CertificateOptions> = {},
): Promise<CertificateFiles> {
  return authority.issue({
    subject: 'CN=localhost',
    san: [
      { type: 'dns', value: 'localhost' },
      { type: 'ip', value: '127.0.0.1' },
    ],
    purpose: 'server',
    ...options,
  });
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, [
    'sign',
    'verify',
  ]) as Promise<webcrypto.CryptoKeyPair>;
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const bytes = await webcrypto.subtle.exportKey('pkcs8', key);
  return x509.PemConverter.encode(bytes, 'PRIVATE KEY');
}
