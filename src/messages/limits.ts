/** The bounds that every message must keep, on sending and on receiving alike. */

/** Body plus attributes of one message, and of one batch. @see AWS: Amazon SQS message quotas */
export const MAX_MESSAGE_BYTES = 1_048_576;

/** Entries in one SendMessageBatch, DeleteMessageBatch or ReceiveMessage. @see AWS: Amazon SQS message quotas */
export const MAX_BATCH_ENTRIES = 10;

/** The longest DelaySeconds. @see AWS: SendMessage. Emulators accept more, so we check it ourselves. */
export const MAX_DELAY_SECONDS = 900;

/**
 * The longest business key in UTF-8. A DynamoDB partition key holds 2,048 bytes and ours also carries the queue's
 * name; 512 leaves room for every item that a flow derives from a key.
 */
export const MAX_KEY_BYTES = 512;

/** The deepest nesting of a body. Deeper ones are refused before any recursive code sees them. */
export const MAX_JSON_DEPTH = 32;
