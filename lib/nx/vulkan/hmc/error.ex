defmodule Nx.Vulkan.HMC.Error do
  @moduledoc """
  Why a sampler gave up.

    * `:kind` - `:initial_point`: the log density or its gradient is not finite where a chain starts;
      `:step_size`: no step size is accepted, or every one is; `:chain`: the function that runs the leapfrog steps
      failed or answered with something else than it must
    * `:message` - a sentence to act on
    * `:reason` - what the function answered, as it was, for `:chain`
    * `:partial` - a `Nx.Vulkan.HMC.Result` of the draws made before a failure while sampling, or `nil`
  """

  defexception [:kind, :message, :reason, :partial]

  @type t :: %__MODULE__{
          kind: :initial_point | :step_size | :chain,
          message: String.t(),
          reason: term(),
          partial: Nx.Vulkan.HMC.Result.t() | nil
        }
end
