/** Status lines have the same reason phrases as those of Node's own server. */
import { STATUS_CODES } from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { statusLine } from '../../../../runtime/protocols/http1/response-head.ts';

const lines = suite('status lines');

lines('every status has the phrase that Node sends', () => {
	for (let status = 100; status < 1000; status++) {
		assert.is(statusLine(status), `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`);
	}
});

lines.run();
