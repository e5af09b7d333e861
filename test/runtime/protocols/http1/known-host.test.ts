/** The Host field of a connection's requests is parsed once and remembered, which takes little memory. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { equalStrings } from '../../../../compiler/exchange/equal-strings.ts';
import { KnownHost } from '../../../../runtime/protocols/http1/known-host.ts';

const hosts = suite('hosts of a connection');

hosts('each authority has its own host, and a malformed one has none and does not replace the known one', () => {
	const known = new KnownHost();
	assert.is(known.hostOf('one.example:8080', 100), 'one.example');
	assert.is(known.hostOf('ONE.example', 100), 'one.example');
	assert.is(known.hostOf('two.example', 5000), 'two.example');
	assert.is(known.hostOf('a b', 100), undefined);
	assert.is(known.hostOf('two.example', 100), 'two.example');
	assert.is(known.hostOf('', 100), '');
});

hosts('remembering an authority does not keep the whole read buffer in memory', () => {
	setFlagsFromString('--expose-gc');
	const gc = runInNewContext('gc') as () => void;
	const held: KnownHost[] = [];
	gc();
	const before = process.memoryUsage().heapUsed;
	for (let i = 0; i < 200; i++) {
		const text = Buffer.alloc(60_000, `host-number-${i}.example `).toString('latin1');
		const known = new KnownHost();
		known.hostOf(text.slice(0, text.indexOf(' ')), text.length);
		held.push(known);
	}
	gc();
	assert.ok(process.memoryUsage().heapUsed - before < 3_000_000, 'most of 12 MB is still in memory');
	assert.is(held.length, 200);
});

hosts('authorities are compared by content, however the strings were created', () => {
	const whole = 'host: www.example.com\r\n';
	assert.ok(equalStrings(whole.slice(6, 21), 'www.example.com'));
	assert.not(equalStrings(whole.slice(6, 21), 'www.example.con'));
	assert.not(equalStrings('a', 'ab'));
	assert.ok(equalStrings('', ''));
});

hosts.run();
