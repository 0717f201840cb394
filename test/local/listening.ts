import { readFileSync } from 'node:fs';
import { connect } from 'node:net';

const LISTEN = '0A';

/** The addresses a port is listened on, as the kernel writes them (hexadecimal, little endian). Linux only. */
export function listeningAddresses(port: number): string[] {
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) =>
    readFileSync(table, 'utf8')
      .split('\n')
      .map((row) => row.trim().split(/\s+/))
      .filter((fields) => fields[3] === LISTEN)
      .flatMap((fields) => fields[1] ?? [])
      .filter((local) => local.endsWith(`:${hexPort}`))
      .map((local) => local.slice(0, local.indexOf(':'))),
  );
}

/** True when something answers on the port. */
export function answersOn(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => {
      resolve(false);
    });
  });
}
