/** Makes many more handshakes that violate TLS than the short test does, and checks that they do not leak memory. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isDirectIo } from '../../runtime/sockets/io-mode.ts';
import { hostileHandshakes } from '../runtime/sockets/hostile-handshakes.ts';

const hostile = suite('many hostile handshakes');

hostile('100,000 violated handshakes end no process and leak no memory', async () => {
	if (!isDirectIo()) return;
	const { growthBytes: growth } = await hostileHandshakes(100_000);
	// A connection of OpenSSL that is not freed takes more than 10 KB, so 90,000 of them would take 900 MB.
	assert.ok(growth < 60_000_000, `${growth} bytes`);
});

hostile.run();
