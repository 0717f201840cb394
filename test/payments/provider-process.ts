import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { request as httpRequest, type OutgoingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ListedCharge } from '../../src/payments/charge-routes.ts';
import type { FaultRule } from '../../src/payments/provider-faults.ts';
import type { HeldRequest } from '../../src/payments/waiting-answers.ts';
import { sampleBody } from './sample-charge.ts';

const SERVER = fileURLToPath(new URL('../../src/payments/provider-server.ts', import.meta.url));

export interface Answer {
  readonly status: number;
  readonly replayed: boolean;
  readonly body: { kind?: string; providerChargeId?: string; error?: { code: string }; [field: string]: unknown };
}

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stderr: string;
}

/** The provider as a process of its own, driven from outside. */
export class ProviderProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<Ended>;
  #port = 0;

  private constructor(args: readonly string[]) {
    this.#child = spawn(process.execPath, [SERVER, ...args], { stdio: 'pipe' });
    let stderr = '';
    this.#child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    this.#ended = once(this.#child, 'close').then(([code, signal]) => ({
      code: code as number | null,
      signal: signal as string | null,
      stderr,
    }));
  }

  /** Starts and waits for the ready line. */
  static async start(journalFile: string): Promise<ProviderProcess> {
    const started = new ProviderProcess(['--port', '0', '--journal', journalFile]);
    const firstLine = once(createInterface({ input: started.#child.stdout }), 'line').then(([line]) => String(line));
    const ready = await Promise.race([firstLine, started.#ended]);
    if (typeof ready !== 'string') throw new Error(`the provider did not start: ${ready.stderr}`);
    started.#port = (JSON.parse(ready) as { port: number }).port;
    return started;
  }

  /** Runs with arguments that must not lead to a running server. */
  static run(args: readonly string[]): Promise<Ended> {
    return new ProviderProcess(args).#ended;
  }

  get port(): number {
    return this.#port;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${String(this.#port)}`;
  }

  kill(signal: NodeJS.Signals): Promise<Ended> {
    this.#child.kill(signal);
    return this.#ended;
  }

  endStdin(): Promise<Ended> {
    this.#child.stdin.end();
    return this.#ended;
  }

  charge(options: { key?: string; caller?: string; body?: object; signal?: AbortSignal } = {}): Promise<Answer> {
    const { key, caller, body = {}, signal } = options;
    const headers = {
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...(caller === undefined ? {} : { 'x-caller': caller }),
    };
    return this.send('POST', '/v1/charges', { ...(signal && { signal }), headers, body: { ...sampleBody, ...body } });
  }

  async send(
    method: string,
    target: string,
    options: { headers?: Record<string, string>; body?: object; signal?: AbortSignal } = {},
  ): Promise<Answer> {
    const response = await fetch(this.baseUrl + target, {
      method,
      headers: { 'content-type': 'application/json', ...options.headers },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
      ...(options.signal && { signal: options.signal }),
    });
    const body = (await response.json()) as Answer['body'];
    return { status: response.status, replayed: response.headers.get('idempotent-replayed') === 'true', body };
  }

  /** For what fetch does not let through: a foreign Host header, a body that is not JSON. */
  sendRaw(options: { method?: string; path?: string; headers: OutgoingHttpHeaders; body?: string }): Promise<number> {
    const { method = 'POST', path: target = '/v1/charges', headers, body } = options;
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest({ host: '127.0.0.1', port: this.#port, method, path: target, headers }, (answer) => {
        answer.resume();
        resolve(answer.statusCode ?? 0);
      });
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  }

  async listCharges(): Promise<ListedCharge[]> {
    const text = await (await fetch(`${this.baseUrl}/v1/charges`)).text();
    const lines = text.split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as ListedCharge);
  }

  async addFault(rule: object): Promise<FaultRule> {
    const { status, body } = await this.send('POST', '/_faults', { body: rule });
    if (status !== 201) throw new Error(`the rule was refused: ${JSON.stringify(body)}`);
    return body as unknown as FaultRule;
  }

  async listFaults(): Promise<(FaultRule & { held: HeldRequest[] })[]> {
    const { body } = await this.send('GET', '/_faults');
    return (body as unknown as { rules: (FaultRule & { held: HeldRequest[] })[] }).rules;
  }

  /** Waits until something newer is held; fails when nothing comes. */
  async nextHeld(after = 0): Promise<HeldRequest> {
    const { body } = await this.send('GET', `/_faults/held?wait=15000&after=${String(after)}`);
    const [first] = (body as unknown as { held: HeldRequest[] }).held;
    if (first === undefined) throw new Error('nothing was held');
    return first;
  }
}

/** A folder for one test file, and how to remove it. */
export async function temporaryFolder(): Promise<{ file: (name: string) => string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'onlyonce-payments-'));
  return {
    file: (name) => path.join(folder, name),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
