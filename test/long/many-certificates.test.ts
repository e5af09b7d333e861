/**
 * Ten thousand certificates from files: a start takes a limited CPU time, and the time of a lookup does not depend on the number of
 * certificates.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { connect } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { CertificateTable } from '../../runtime/tls/certificate-table.ts';
import { TestAuthority } from '../certificates.ts';
import { freePorts, serve, temporaryFolder } from '../harness.ts';

const CERTIFICATE_COUNT = 10_000;
/** CPU milliseconds, over all threads, that a start with all of these certificates may take. */
const START_LIMIT_MS = 10_000;

const many = suite('many certificates');

many('are served after a start that takes less than ten seconds of processor time', async () => {
	const folder = temporaryFolder();
	const authority = await TestAuthority.make();
	const [port = 0, httpPort = 0] = await freePorts(2);
	// Issuing certificates is slow, so only a thousand are issued, each for ten names, and copied to the files of ten sites.
	const pairs = await Promise.all(
		Array.from({ length: 1000 }, (_, pair) =>
			authority.issue({ names: Array.from({ length: 10 }, (_, at) => `n${pair * 10 + at}.example`) }),
		),
	);
	let text = `{\n\tadmin off\n\tthreads 2\n\thttp_port ${httpPort}\n\thttps_port ${port}\n\tauto_https off\n}\n`;
	for (let at = 0; at < CERTIFICATE_COUNT; at++) {
		const { certificate, key } = pairs[Math.floor(at / 10)]!;
		writeFileSync(path.join(folder, `${at}.pem`), certificate);
		writeFileSync(path.join(folder, `${at}.key`), key);
		text += `n${at}.example {\n\tbind 127.0.0.1\n\ttls ${at}.pem ${at}.key\n}\n`;
	}
	writeFileSync(path.join(folder, 'Configfile'), text);
	const startedAt = performance.now();
	const server = await serve([], port, { cwd: folder });
	const wall = performance.now() - startedAt;
	const [, ...times] = readFileSync(`/proc/${server.child.pid}/stat`, 'utf8').split(') ');
	const fields = times.join(') ').split(' ');
	const took = (Number(fields[11]) + Number(fields[12])) * 10;
	console.log(`${CERTIFICATE_COUNT} certificates: serving after ${wall.toFixed(0)} ms, ${took} ms of processor time`);
	try {
		for (const at of [0, 4321, CERTIFICATE_COUNT - 1])
			assert.match(await namesAt(port, `n${at}.example`), `DNS:n${at}.example`);
		assert.ok(took < START_LIMIT_MS, `${took} ms`);
	} finally {
		await server.stop();
	}
});

many('are looked up in a time that does not grow with their number', () => {
	const find = (count: number): number => {
		const table = new CertificateTable();
		const client = { cipherSuites: [], signatureSchemes: [] };
		for (let at = 0; at < count; at++) {
			table.set({ id: `${at}`, names: [`n${at}.example`, `*.w${at}.example`], chain: '', key: '' });
		}
		const rounds = 200_000;
		let found = 0;
		for (let at = 0; at < rounds; at++) if (table.find(`x.w${at % count}.example`, client)) found++;
		const usedBefore = process.threadCpuUsage();
		for (let at = 0; at < rounds; at++) if (table.find(`x.w${at % 100}.example`, client)) found++;
		const { user, system } = process.threadCpuUsage(usedBefore);
		assert.is(found, 2 * rounds);
		return (user + system) / 1000 / rounds;
	};
	const few = find(100);
	const lots = find(100_000);
	console.log(`look-up: ${(few * 1e6).toFixed(0)} ns among 100, ${(lots * 1e6).toFixed(0)} ns among 100,000`);
	assert.ok(lots < few * 5, `${few} ms, ${lots} ms`);
});

function namesAt(port: number, servername: string): Promise<string> {
	return new Promise((resolve, reject) => {
		const socket = connect({ port, host: '127.0.0.1', servername, rejectUnauthorized: false }, () => {
			resolve(socket.getPeerX509Certificate()?.subjectAltName ?? '');
			socket.destroy();
		});
		socket.on('error', reject);
	});
}

many.run();
