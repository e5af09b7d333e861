/**
 * Tests RFC 9110 and RFC 9112 requirement by requirement, over real sockets, with the real server. An upstream sends what each
 * requirement specifies.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Step } from '../../../../compiler/document/document.ts';
import { withServer } from '../../running-server.ts';
import { CLIENT_REQUIREMENTS } from './conformance/client-requirements.ts';
import { PROXY_REQUIREMENTS } from './conformance/proxy-requirements.ts';
import type { Requirement } from './conformance/requirement.ts';
import { SERVER_REQUIREMENTS } from './conformance/server-requirements.ts';
import { RecordingUpstream } from './recording-upstream.ts';
import { openWire } from './wire.ts';

const ALL_REQUIREMENTS: readonly Requirement[] = [
	...SERVER_REQUIREMENTS,
	...PROXY_REQUIREMENTS,
	...CLIENT_REQUIREMENTS,
];

const conformance = suite('RFC 9110 and 9112');

/** Sends the bytes of a requirement and returns everything that is received. */
async function answerTo(port: number, send: Requirement['send']): Promise<string> {
	const wire = await openWire(port);
	const pieces = typeof send === 'string' ? [send] : send;
	for (const [index, piece] of pieces.entries()) {
		if (index > 0) await new Promise(resolve => setTimeout(resolve, 15));
		if (piece === '<end>') wire.socket.end();
		else wire.send(piece);
	}
	const text = await wire.whole(3000);
	wire.socket.destroy();
	return text;
}

function found(text: string, wanted: string | RegExp): boolean {
	return typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text);
}

conformance('every row of the table holds', async () => {
	const upstream = await RecordingUpstream.start();
	const steps: Step[] = [
		{
			handler: 'proxy',
			when: { type: 'path', patterns: ['/up/*'] },
			upstreams: { to: [`127.0.0.1:${upstream.port}`] },
		},
		{ handler: 'respond', when: { type: 'path', patterns: ['/none'] }, status: 204 },
		{ handler: 'respond', body: 'ok' },
	];
	const failures: string[] = [];
	const site = { addresses: ['http://:0'], bind: ['127.0.0.1'], pipeline: steps };
	await withServer({ sites: [site] }, { threads: 1 }, async ({ port }) => {
		for (const row of ALL_REQUIREMENTS) {
			upstream.expect(row.upstream, row.upstreamCloses === true, row.upstreamContinues === true);
			const name = `${row.section} ${row.who}: ${row.says}`;
			const text = await answerTo(port, row.send).catch((error: Error) => `!${error.message}`);
			const got = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
			const complain = (what: string): void => {
				const shown = JSON.stringify({ client: text.slice(0, 600), upstream: upstream.received.slice(0, 600) });
				failures.push(`${name}\n  ${what}\n  ${shown}`);
			};
			if (text.startsWith('!')) complain('no end');
			if (row.statuses && String(got) !== String(row.statuses)) complain(`statuses ${got}, wanted ${row.statuses}`);
			for (const part of row.has ?? []) if (!found(text, part)) complain(`lacks ${part}`);
			for (const part of row.lacks ?? []) if (found(text, part)) complain(`has ${part}`);
			for (const part of row.upstreamHas ?? []) {
				if (!found(upstream.received, part)) complain(`the upstream did not receive ${part}`);
			}
			for (const part of row.upstreamLacks ?? []) {
				if (found(upstream.received, part)) complain(`the upstream received ${part}`);
			}
			const requests = row.upstreamRequests;
			if (requests !== undefined && upstream.requests !== requests) complain(`${upstream.requests} upstream requests`);
		}
	});
	await upstream.stop();
	assert.equal(failures, [], failures.join('\n'));
	assert.ok(ALL_REQUIREMENTS.length > 100, `${ALL_REQUIREMENTS.length} rows`);
});

conformance.run();
