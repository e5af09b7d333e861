/** Requests that stand for many: for the hosts and paths that patterns describe. */
import type { ListenerSpec, Plan } from '../codegen/plan.ts';
import type { Matcher } from '../document/document.ts';
import { type DryRunRequest, isRequestUrl, parseRequestUrl } from '../dry-run/dry-run-request.ts';
import { fakeExchange } from '../dry-run/fake-exchange.ts';
import type { Request } from '../exchange/exchange.ts';
import { pathsOf } from '../modules/matchers/index.ts';
import { asserted, type WalkedStep } from './walk-document.ts';

/** A host that a pattern stands for; one that nobody names for ''. */
export function sampleHost(pattern: string): string {
	return pattern === '' ? 'host.invalid' : pattern.replaceAll('*', 'any-label');
}

/** A GET of a URL. Undefined when the text is none that could be sent. */
export function sampleGet(text: string): DryRunRequest | undefined {
	const url = parseRequestUrl(text);
	if (!isRequestUrl(url)) return undefined;
	return { method: 'GET', url, headers: [], body: undefined, from: undefined, at: undefined };
}

/** The request of a GET of `/` at a host. */
export function sampleRequest(listener: ListenerSpec, host: string): Request {
	const shown = host.includes(':') ? `[${host}]` : host;
	return fakeExchange(sampleGet(`${listener.scheme}://${shown}:${listener.port}/`)!, listener).request;
}

/** The beginnings of URLs, up to the path, under which a site is served. */
export function originsOf(plan: Plan, site: number): string[] {
	const origins: string[] = [];
	for (const { scheme, port, sites, host: bound } of plan.listeners) {
		for (const { site: index, hosts } of sites) {
			if (index !== site) continue;
			const host = hosts[0] === undefined ? sampleHost(bound === '' ? '' : bound) : sampleHost(hosts[0]);
			const implied = port === (scheme === 'http' ? 80 : 443);
			origins.push(`${scheme}://${host.includes(':') ? `[${host}]` : host}${implied ? '' : `:${port}`}`);
		}
	}
	return origins;
}

/** Paths that come to a step, by the path matchers of it and of the steps around it; `/` when there are none. */
export function samplePaths(step: WalkedStep, conditions: readonly Matcher[]): string[] {
	const paths = new Set<string>();
	for (const condition of conditions) {
		for (const { matcher } of asserted(condition, '')) {
			for (const pattern of pathsOf(matcher)?.values ?? []) {
				if (pattern.includes('{') || pattern.includes('%')) continue;
				paths.add(pathOf(pattern.replace(/\*$/, '')));
				if (pattern.endsWith('*')) paths.add(pathOf(pattern));
			}
		}
	}
	if (paths.size === 0) paths.add('/');
	return [...paths].slice(0, step.pipeline.ofErrors ? 0 : 8);
}

function pathOf(pattern: string): string {
	const path = pattern
		.replaceAll('*', 'any')
		.replaceAll('?', 'x')
		.replace(/\[([^\]]).*?\]/g, '$1');
	return path.startsWith('/') ? path : `/${path}`;
}
