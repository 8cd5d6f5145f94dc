// Recognizes the variables that Kubernetes sets in every container for each Service of its namespace. For a Service
// named sagitta, or sagitta-…, they look like settings: SAGITTA_PORT=tcp://10.0.0.1:8484.

import { isIP } from 'node:net';

const isPort = (value: string): boolean => /^\d{1,5}$/.test(value) && Number(value) <= 65_535;
const isProtocol = (value: string): boolean => /^(tcp|udp|sctp)$/.test(value);
const isAddress = (value: string): boolean => isIP(value) !== 0;

/** For example `tcp://10.0.0.1:8484`; an IPv6 address is in brackets. */
function isUrl(value: string): boolean {
  const [, protocol, ipv6, ipv4, port] = /^(\w+):\/\/(?:\[(.+)\]|(.+)):(\d+)$/.exec(value) ?? [];
  return port !== undefined && isProtocol(protocol!) && isAddress(ipv6 ?? ipv4!) && isPort(port);
}

/** The end of the variable name, after the name of the Service, and a check of the value. */
const SHAPES: readonly (readonly [RegExp, (value: string) => boolean])[] = [
  [/_SERVICE_HOST$/, isAddress],
  [/_SERVICE_PORT(_[A-Z0-9_]+)?$/, isPort],
  [/_PORT$/, isUrl],
  [/_PORT_\d+_(TCP|UDP|SCTP)$/, isUrl],
  [/_PORT_\d+_(TCP|UDP|SCTP)_PROTO$/, isProtocol],
  [/_PORT_\d+_(TCP|UDP|SCTP)_PORT$/, isPort],
  [/_PORT_\d+_(TCP|UDP|SCTP)_ADDR$/, isAddress],
];

export function isServiceVariable(name: string, value: string): boolean {
  return SHAPES.some(([end, isValid]) => end.test(name) && isValid(value));
}
