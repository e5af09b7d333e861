/** A memory page into which a small file is read has only one user at a time, however the body is used. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { FilePages, RESPONSE_HEAD_ROOM_BYTES } from '../../../runtime/files/file-pages.ts';
import { ReadBody } from '../../../runtime/files/read-body.ts';

const bodies = suite('bodies in memory pages');

function fillBody(pages: FilePages, text: string): ReadBody {
	const page = pages.takePage();
	page.memory.write(text, RESPONSE_HEAD_ROOM_BYTES, 'latin1');
	return new ReadBody(pages, page, text.length);
}

function text(bytes: Uint8Array | null | undefined): string | undefined {
	return bytes ? Buffer.from(bytes).toString('latin1') : undefined;
}

bodies('a body is returned once, and its page becomes free with the pull after that', () => {
	const pages = new FilePages(100, undefined);
	const one = fillBody(pages, 'one');
	const first = one.pull()!;
	assert.is(text(first), 'one');
	const two = fillBody(pages, 'two');
	assert.is(text(first), 'one', 'the second body overwrote the page of the first');
	assert.is(one.pull(), null);
	assert.is(one.pull(), null);
	assert.is(pages.takePage().memory.buffer, first.buffer);
	assert.is(text(two.pull()), 'two');
});

bodies('a body can be joined to its head if there is room and nothing has been pulled', () => {
	const pages = new FilePages(100, undefined);
	const body = fillBody(pages, 'body');
	assert.is(body.prependHead('h'.repeat(RESPONSE_HEAD_ROOM_BYTES + 1)), undefined);
	assert.is(text(body.prependHead('head\xff\r\n\r\n')), 'head\xff\r\n\r\nbody');
	assert.is(body.prependHead('again'), undefined);
	assert.is(body.pull(), null);
	const pulled = fillBody(pages, 'pulled');
	pulled.pull();
	assert.is(pulled.prependHead('late'), undefined);
	const whole = fillBody(pages, 'x');
	assert.is(whole.prependHead('h'.repeat(RESPONSE_HEAD_ROOM_BYTES))?.length, RESPONSE_HEAD_ROOM_BYTES + 1);
});

bodies('a page is not reused if its body is canceled while the bytes may still be being sent', () => {
	const pages = new FilePages(100, undefined);
	const sent = fillBody(pages, 'sent');
	const bytes = sent.pull();
	sent.cancel();
	sent.cancel();
	for (let turn = 0; turn < 6; turn++) fillBody(pages, 'else');
	assert.is(text(bytes), 'sent');
	assert.is(sent.pull(), null);
	// If a body is canceled before anything was pulled, its page is reused.
	const unused = pages.takePage();
	new ReadBody(pages, unused, 3).cancel();
	assert.is(pages.takePage(), unused);
});

bodies.run();
