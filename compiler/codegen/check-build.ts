/** Builds every site once with stand-ins, so that whatever only code generation can find is found before anything is applied. */
import type { Report } from '../diagnostics/diagnostic.ts';
import type { Document, Site } from '../document/document.ts';
import type { Reader } from '../source/reader.ts';
import { type BuildEnvironment, buildSite } from './build-site.ts';
import { checkServers } from './check-servers.ts';
import { checkingLeases } from './checking-leases.ts';
import { BuildError } from './compile-context.ts';
import { NO_FACTS } from './placeholders/index.ts';
import { standInLeases } from './stand-in-leases.ts';

/**
 * Reports what cannot be built, at its pointer; of each step of a site's pipelines the first. `built` holds sites that are
 * known to build with these settings, upstreams and routes; those found so are added.
 * @param reader Reads the files that pools name; without it they are not looked at.
 */
export function checkBuild(document: Document, report: Report, built?: WeakSet<Site>, reader?: Reader): void {
	checkServers(document, report);
	const environment: BuildEnvironment = {
		settings: document.settings ?? {},
		upstreams: document.upstreams ?? {},
		routes: document.routes ?? {},
		leases: reader ? checkingLeases(reader) : standInLeases,
		facts: NO_FACTS,
	};
	(document.sites ?? []).forEach((site, index) => {
		if (built?.has(site)) return;
		if (tryBuild(site, index, environment) === undefined) {
			built?.add(site);
			return;
		}
		let found = false;
		const { errors, ...rest } = site;
		site.pipeline.forEach((step, at) => {
			const error = tryBuild({ ...rest, pipeline: [step] }, index, environment);
			if (!error) return;
			found = true;
			reportAt(error, error.pointer.replace(`/sites/${index}/pipeline/0`, `/sites/${index}/pipeline/${at}`), report);
		});
		errors?.forEach((route, at) => {
			const error = tryBuild({ ...rest, pipeline: [], errors: [route] }, index, environment);
			if (!error) return;
			found = true;
			reportAt(error, error.pointer.replace(`/sites/${index}/errors/0`, `/sites/${index}/errors/${at}`), report);
		});
		if (found) return;
		const whole = tryBuild(site, index, environment);
		if (whole) reportAt(whole, whole.pointer, report);
	});
}

function tryBuild(site: Site, index: number, environment: BuildEnvironment): BuildError | undefined {
	try {
		buildSite(site, index, environment);
		return undefined;
	} catch (error) {
		if (error instanceof BuildError) return error;
		const message = error instanceof Error ? error.message : String(error);
		return new BuildError('document/cannot-be-built', `/sites/${index}`, message);
	}
}

function reportAt(error: BuildError, pointer: string, report: Report): void {
	report({ code: error.code, severity: 'error', pointer, message: error.message });
}
