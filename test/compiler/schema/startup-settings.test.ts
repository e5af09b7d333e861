/** Settings that take effect only after a restart. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document, Settings } from '../../../compiler/document/document.ts';
import { startupChanges } from '../../../compiler/schema/startup-settings.ts';

function changedSettings(before: Settings | undefined, after: Settings | undefined): string[] {
	const document = (settings: Settings | undefined): Document => (settings ? { settings } : {});
	return startupChanges(document(before), document(after)).map(({ setting }) => setting);
}

const startup = suite('startup-fixed settings');

startup('metrics and trusted proxies need a restart, and threads do not', () => {
	assert.equal(changedSettings({ threads: 1 }, { threads: 2 }), []);
	assert.equal(changedSettings(undefined, { metrics: {} }), ['metrics']);
	assert.equal(changedSettings({ trusted_proxies: ['::1'] }, {}), ['trusted_proxies']);
});

startup('the address of the Admin API needs a restart, but not its token and origins', () => {
	assert.equal(changedSettings({ admin: {} }, { admin: { listen: '127.0.0.1:2019' } }), []);
	assert.equal(changedSettings({ admin: {} }, { admin: { listen: '127.0.0.1:2020' } }), ['admin.listen']);
	assert.equal(changedSettings({ admin: { token: 'a' } }, { admin: { token: 'b', origins: ['x'] } }), []);
	assert.equal(changedSettings({}, { admin: {} }), ['admin.listen']);
	assert.equal(changedSettings({}, { admin: { off: true } }), []);
});

startup('logs, debug and the grace period need no restart', () => {
	assert.equal(changedSettings({ debug: true, grace_period: 1 }, { logs: { default: { level: 'INFO' } } }), []);
});

startup('a changed `@id` needs no restart', () => {
	const named = { metrics: { '@id': 'numbers', per_host: true } } as unknown as Settings;
	assert.equal(changedSettings({ metrics: { per_host: true } }, named), []);
	assert.equal(changedSettings(named, { metrics: { per_host: false } }), ['metrics']);
});

startup.run();
