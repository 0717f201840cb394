#!/usr/bin/env bash
# Runs inside LocalStack when it is ready, so that `docker compose up` alone gives a table and queues to work with.
#
# Makes what `onlyonce bootstrap` makes, and like it only what is missing. Names and numbers are those of
# src/store/table.ts, src/store/create-table.ts and src/queues/topology.ts; test/docs/localstack.test.ts compares.
set -euo pipefail
export AWS_DEFAULT_REGION="${AWS_DEFAULT_REGION:-us-east-1}"

TABLE=onlyonce
QUEUE=onlyonce-charges
DEAD_LETTER_QUEUE="$QUEUE-dlq"
VISIBILITY_TIMEOUT_SECONDS=30
RETENTION_SECONDS=1209600
MAX_RECEIVE_COUNT=100

make_table() {
  if awslocal dynamodb describe-table --table-name "$TABLE" >/dev/null 2>&1; then return; fi
  awslocal dynamodb create-table --cli-input-json '{
    "TableName": "'"$TABLE"'",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
      { "AttributeName": "PK", "AttributeType": "S" },
      { "AttributeName": "SK", "AttributeType": "S" },
      { "AttributeName": "GSI1PK", "AttributeType": "S" },
      { "AttributeName": "GSI1SK", "AttributeType": "S" }
    ],
    "KeySchema": [
      { "AttributeName": "PK", "KeyType": "HASH" },
      { "AttributeName": "SK", "KeyType": "RANGE" }
    ],
    "GlobalSecondaryIndexes": [
      {
        "IndexName": "GSI1",
        "KeySchema": [
          { "AttributeName": "GSI1PK", "KeyType": "HASH" },
          { "AttributeName": "GSI1SK", "KeyType": "RANGE" }
        ],
        "Projection": { "ProjectionType": "ALL" }
      }
    ]
  }' >/dev/null
  awslocal dynamodb wait table-exists --table-name "$TABLE"
}

# A script that was cut off may have left a table without TTL: it is looked at for itself.
switch_on_ttl() {
  local status
  status="$(awslocal dynamodb describe-time-to-live --table-name "$TABLE" \
    --query TimeToLiveDescription.TimeToLiveStatus --output text)"
  case "$status" in ENABLED | ENABLING) return ;; esac
  awslocal dynamodb update-time-to-live --cli-input-json '{
    "TableName": "'"$TABLE"'",
    "TimeToLiveSpecification": { "Enabled": true, "AttributeName": "ttl" }
  }' >/dev/null
}

# Takes the name of a queue and its attributes as JSON.
make_queue() {
  if awslocal sqs get-queue-url --queue-name "$1" >/dev/null 2>&1; then return; fi
  awslocal sqs create-queue --cli-input-json '{ "QueueName": "'"$1"'", "Attributes": '"$2"' }' >/dev/null
}

arn_of() {
  local url
  url="$(awslocal sqs get-queue-url --queue-name "$1" --query QueueUrl --output text)"
  awslocal sqs get-queue-attributes --queue-url "$url" --attribute-names QueueArn \
    --query Attributes.QueueArn --output text
}

make_table
switch_on_ttl
# The dead-letter queue first: the other one names it.
make_queue "$DEAD_LETTER_QUEUE" '{ "MessageRetentionPeriod": "'"$RETENTION_SECONDS"'" }'
arn="$(arn_of "$DEAD_LETTER_QUEUE")"
make_queue "$QUEUE" '{
  "VisibilityTimeout": "'"$VISIBILITY_TIMEOUT_SECONDS"'",
  "MessageRetentionPeriod": "'"$RETENTION_SECONDS"'",
  "RedrivePolicy": "{\"deadLetterTargetArn\":\"'"$arn"'\",\"maxReceiveCount\":'"$MAX_RECEIVE_COUNT"'}"
}'
echo "table $TABLE, queues $QUEUE and $DEAD_LETTER_QUEUE are there"
