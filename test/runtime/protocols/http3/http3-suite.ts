/** Test suites for HTTP/3, which needs `direct` I/O. */
import { type Context, suite, type uvu } from 'uvu';
import * as assert from 'uvu/assert';
import { isDirectIo } from '../../../../runtime/sockets/io-mode.ts';
import { quicSupport } from '../../../../runtime/sockets/quic/quic-library.ts';

/** Creates a suite. With `node` I/O, its cases are replaced by a single one, which checks the reason why HTTP/3 is unavailable. */
export function http3Suite(name: string): uvu.Test<Context> {
	if (isDirectIo()) return suite(name);
	const instead = suite(name);
	instead('is unavailable with node I/O', () => {
		assert.match(quicSupport().missing ?? '', /`direct` I\/O/);
	});
	const ignored = () => Object.assign(() => {}, { each() {} });
	const hooks = { before: ignored(), after: ignored(), only: ignored(), skip: ignored() };
	return Object.assign(() => {}, { ...hooks, run: () => instead.run() }) as unknown as uvu.Test<Context>;
}
