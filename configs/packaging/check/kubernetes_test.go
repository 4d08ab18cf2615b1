package check

import (
	"bytes"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// objects decodes the example as the API server would with strict validation.
func objects(t *testing.T) (secret core.Secret, deployment apps.Deployment, service core.Service) {
	t.Helper()
	for doc := range bytes.SplitSeq(read(t, "kubernetes/zen-mcp.yaml"), []byte("\n---\n")) {
		var kind struct{ Kind, APIVersion string }
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			t.Fatal(err)
		}
		into, ok := map[[2]string]any{
			{"v1", "Secret"}:          &secret,
			{"apps/v1", "Deployment"}: &deployment,
			{"v1", "Service"}:         &service,
		}[[2]string{kind.APIVersion, kind.Kind}]
		if !ok {
			t.Fatalf("unexpected kind %+v", kind)
		}
		if err := yaml.UnmarshalStrict(doc, into); err != nil {
			t.Fatalf("%s: %v", kind.Kind, err)
		}
	}
	return secret, deployment, service
}

func TestKubernetes(t *testing.T) {
	t.Parallel()
	secret, deployment, service := objects(t)
	pod := deployment.Spec.Template
	c := pod.Spec.Containers[0]
	for what, selector := range map[string]map[string]string{"deployment": deployment.Spec.Selector.MatchLabels, "service": service.Spec.Selector} {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
			t.Errorf("the %s selects %v, the pod has %v", what, selector, pod.Labels)
		}
	}
	port := c.Ports[0]
	if port.ContainerPort != 8080 {
		t.Errorf("the container's port is %d, the server's 8080", port.ContainerPort)
	}
	if got := service.Spec.Ports[0].TargetPort.StrVal; got != port.Name {
		t.Errorf("the service's port is %q, the container's %q", got, port.Name)
	}
	for path, probe := range map[string]*core.Probe{"/readyz": c.ReadinessProbe, "/healthz": c.LivenessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != port.Name {
			t.Errorf("%s: %+v", path, probe)
		}
	}
	volumes := map[string]core.VolumeSource{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = v.VolumeSource
	}
	for _, m := range c.VolumeMounts {
		v, ok := volumes[m.Name]
		if !ok {
			t.Errorf("%s is mounted, but no volume", m.Name)
		}
		if m.MountPath == "/etc/zen-mcp" && (v.Secret == nil || v.Secret.SecretName != secret.Name) {
			t.Errorf("the tokens come from %+v, not from secret %q", v, secret.Name)
		}
	}
	if *pod.Spec.TerminationGracePeriodSeconds <= 10 {
		t.Error("the pod ends before --grace")
	}
	if sc := c.SecurityContext; !*pod.Spec.SecurityContext.RunAsNonRoot || !*sc.ReadOnlyRootFilesystem || *sc.AllowPrivilegeEscalation {
		t.Errorf("the container may do more than it needs: %+v", sc)
	}
}
