/** In the value of `Connection`, only spaces and tabs are ignored around an option. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ourServerReader } from '../../../fuzz/readings.ts';

const options = suite('options of Connection');

options('a no-break space is part of an option, so the connection is not kept alive', async () => {
	const read = ourServerReader();
	const messages = async (value: string): Promise<number> => {
		const head = `GET /old HTTP/1.0\r\nConnection:${value}\r\n\r\n`;
		return (await read([`${head}GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`])).messages.length;
	};
	assert.is(await messages(' keep-alive'), 2);
	assert.is(await messages('\t keep-alive \t'), 2);
	assert.is(await messages('\u00a0keep-alive'), 1);
	assert.is(await messages(' keep-alive\u00a0'), 1);
});

options.run();
