# A recipe for Spack. flux-dws goes into a prefix of its own, as every package does
# there, and what it sets in the environment tells Flux where that is.
# SPDX-License-Identifier: LGPL-3.0-only
#
# Spack 0.22 has the build systems in spack.package. Spack 1 has them in its repository
# of packages, and wants to know which compilers are needed.
import os

from spack.package import *

try:
    from spack_repo.builtin.build_systems.meson import MesonPackage

    spack_1 = True
except ImportError:
    spack_1 = False


class FluxDws(MesonPackage):
    """Rabbit near-node storage for the Flux resource manager: jobs ask for storage with
    #DW directives, which goes through Data Workflow Services."""

    # The checkout that this recipe is in: packages.yaml can name another one.
    git = "file://" + os.path.abspath(join_path(__file__, *[os.pardir] * 5))

    license("LGPL-3.0-only")

    version("main", branch="main")

    if spack_1:
        depends_on("c", type="build")
    depends_on("meson@0.58:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("py-docutils", type="build")
    depends_on("cmocka", type="test")

    depends_on("flux-core@0.80:", type=("build", "link", "run"))
    depends_on("jansson@2.11:")
    depends_on("python@3.9:", type=("build", "link", "run"))
    depends_on("py-cffi@1.15:", type=("build", "run"))
    # For the agent.
    depends_on("py-kubernetes@22:", type="run")
    depends_on("py-prometheus-client@0.16:", type="run")
    depends_on("py-pycurl@7.43:", type="run")
    # For the scripts that Flux runs when an instance starts, and around jobs.
    depends_on("jq", type="run")

    sanity_check_is_file = [
        join_path("lib", "flux", "modules", "dws.so"),
        join_path("share", "flux-dws", "environment.sh"),
    ]

    def meson_args(self):
        return [
            "-Dflux=system",
            "-Downprefix=true",
            "-Ddemo=disabled",
            "-Dwerror=false",
            f"-Dtests={'true' if self.run_tests else 'false'}",
        ]

    def setup_run_environment(self, env):
        # What share/flux-dws/environment.sh says; MANPATH is set by Spack itself.
        conf = join_path(self.prefix.etc, "flux")
        env.prepend_path(
            "FLUX_EXEC_PATH_PREPEND", join_path(self.prefix.libexec, "flux", "cmd")
        )
        env.prepend_path(
            "FLUX_MODULE_PATH_PREPEND", join_path(self.prefix.lib, "flux", "modules")
        )
        env.prepend_path("FLUX_CLI_PLUGINPATH", join_path(conf, "cli", "plugins"))
        env.prepend_path("FLUX_MODPROBE_PATH_APPEND", join_path(conf, "modprobe"))
        env.prepend_path("FLUX_RC_EXTRA", conf)
