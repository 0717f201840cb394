import v8 from 'node:v8';
import { SendMessageBatchCommand } from '@aws-sdk/client-sqs';
const S='/tmp/wt5/src/';
const { startLocalBackends } = await import(S+'local/backends.ts');
const { createPollingClient, createQueueClient } = await import(S+'queues/client.ts');
const { createQueuePair } = await import(S+'queues/create-queues.ts');
const { createStore } = await import(S+'store/store.ts');
const { createWorker } = await import(S+'workers/worker.ts');
const { countEffect, noteHandler, noteBody } = await import('/tmp/wt5/test/support/worker-contract.ts');
const b = await startLocalBackends();
const C = { region:'us-east-1', credentials:{accessKeyId:'t',secretAccessKey:'t'} };
const store = createStore({...C, endpoint:b.dynamodbEndpoint}); await store.bootstrap();
const client = createQueueClient({...C, endpoint:b.sqsEndpoint});
const pair = await createQueuePair(client,'q');
const commit = process.argv[2];
let n=0;
const worker = createWorker({ queue:'q', queueUrl:pair.queue.url, deadLetterQueueUrl:pair.deadLetterQueue.url, client, pollingClient:createPollingClient({...C,endpoint:b.sqsEndpoint}), store, waitTimeSeconds:1, concurrency:16,
 handlers:[{...noteHandler(async (m:any)=>({kind:'completed',response:{},effects:[countEffect('q/'+m.key)]})), commit}], events:{onOutcome:()=>{n++}} });
await worker.start();
let k=0;
const snap = process.argv[3];
for (let round=0; round<25; round++){
  for(let i=0;i<100;i++){ await client.send(new SendMessageBatchCommand({QueueUrl:pair.queue.url, Entries:Array.from({length:10},(_,j)=>({Id:String(j),MessageBody:noteBody({id:'n'+(k++),text:''})}))})); }
  while(n<k) await new Promise(r=>setTimeout(r,50));
  await new Promise(r=>setTimeout(r,300));
  if (process.env.GC) globalThis.gc!();
  const m=process.memoryUsage(); console.log(n,(m.heapUsed/1048576).toFixed(2),(m.external/1048576).toFixed(2),(m.rss/1048576).toFixed(0));
  if (snap && (round===1||round===6)) v8.writeHeapSnapshot(`/tmp/h10/${commit}-${round}.heapsnapshot`);
}
await worker.stop(); client.destroy(); store.close(); await b.stop(); process.exit();
