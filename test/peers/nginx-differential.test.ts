/** Sends the mutated requests that svc accepts to nginx, which must see the same targets and no additional requests. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { requestMaker } from '../fuzz/mutated-requests.ts';
import { endOfMessages, ourServerReader } from '../fuzz/readings.ts';
import { freePorts, temporaryFolder } from '../harness.ts';
import { openWire } from '../runtime/protocols/http1/wire.ts';
import { startNginx } from './nginx-process.ts';

const peers = suite('mutated requests, for nginx');

/** Requests with methods that nginx accepts and targets that it reports unchanged. */
const COMPARABLE_REQUEST = /^[A-Z_-]+ \/[\x21-\x3d\x3f-\x7e]* /;

peers('nginx and svc interpret the accepted targets alike', async () => {
	const [port] = (await freePorts(1)) as [number];
	const folder = temporaryFolder();
	const nginx = await startNginx(
		folder,
		port,
		`access_log off; server_tokens off;
	server { listen 127.0.0.1:${port}; location / { default_type text/plain; return 200 "<$request_method $request_uri>"; } }`,
	);
	const disagreements: string[] = [];
	let compared = 0;
	try {
		const seed = Number(process.env.FUZZ_SEED ?? 1);
		const { request } = requestMaker(seed);
		const ours = ourServerReader();
		const end = performance.now() + Number(process.env.FUZZ_BUDGET ?? 8000);
		while (performance.now() < end && disagreements.length < 5) {
			const text = request();
			const { messages } = await ours([text]);
			const odd = messages.findIndex(message => !COMPARABLE_REQUEST.test(message) || message.startsWith('TRACE '));
			const known = odd === -1 ? messages : messages.slice(0, odd);
			// Skips paths for which nginx has its own rules: it refuses paths that leave the root or contain NUL or an invalid
			// escape.
			if (known.length === 0 || /\.\.|%00|%(?![0-9a-f]{2})|HTTP\/1\.0/i.test(text)) continue;
			const client = await openWire(port);
			client.send(text.slice(0, endOfMessages(text, known.length)));
			client.socket.end();
			const answer = await client.whole(5000).catch(() => client.text);
			client.socket.destroy();
			// For a target in absolute form without a path, nginx reports only the query.
			const nginxMessages = [...answer.matchAll(/<([A-Z_-]+ [/?][^>]*)>/g)].map(([, seen]) =>
				seen!.replace(' ?', ' /?'),
			);
			const ourMessages = known
				.map(message => message.split(' ', 2).join(' '))
				// A response to HEAD has no body, and so cannot report the target.
				.filter(message => !message.startsWith('HEAD '));
			// nginx may refuse requests that Node and svc accept (such as those with a tab before a value), but must never see a
			// different message.
			const same = nginxMessages.every((message, index) => ourMessages[index] === message);
			if (nginxMessages.length > 0) compared++;
			if (!same)
				disagreements.push(
					JSON.stringify({ text, wanted: ourMessages, theirs: nginxMessages, answer: answer.slice(0, 300) }),
				);
		}
	} finally {
		await nginx.stop();
	}
	assert.equal(disagreements, [], disagreements.join('\n'));
	assert.ok(compared > 100, `${compared} compared`);
});

peers.run();
