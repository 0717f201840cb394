/** One request handed to the SQS application without a network. */
export interface QueueAppRequest {
  method: 'GET' | 'POST';
  url: string;
  headers?: Record<string, string>;
  payload?: Buffer | string;
}

/** What the SQS application answers. */
export interface QueueAppResponse {
  statusCode: number;
  headers: Record<string, number | string | string[] | undefined>;
  rawPayload: Buffer;
}

/** The part of the Fastify application that onlyonce uses. */
export interface QueueApp {
  inject(request: QueueAppRequest): Promise<QueueAppResponse>;
  close(): Promise<unknown>;
}

/** A fresh, empty SQS that lives in the memory of this process and listens nowhere. */
export function buildQueueApp(): Promise<QueueApp>;

/** The path of the DynamoDB program, or undefined where its optional package is not installed. */
export function dynoxideBinary(): string | undefined;
